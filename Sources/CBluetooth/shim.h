// SPDX-License-Identifier: Apache-2.0

#pragma once
#include <sys/ioctl.h>

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>

// Macros with a type inside, which Swift does not import.
static const unsigned long cbluetooth_get_device_list = HCIGETDEVLIST;
static const unsigned long cbluetooth_get_device_info = HCIGETDEVINFO;
