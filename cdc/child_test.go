package cdc_test

const childVariable = "WAYBILL_CDC_CHILD"

func childMain() {}
