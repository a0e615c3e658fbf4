// SPDX-License-Identifier: Apache-2.0

#pragma once
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
