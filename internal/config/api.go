package config

import "errors"

// API is how the API divides its work among merchants. What is left out is
// package logistica/api's default.
type API struct {
	// Rate is how many requests a second a merchant, or a courier, may send for
	// long.
	Rate float64 `yaml:"rate"`
	// Burst is how many it may send at once after a rest.
	Burst float64 `yaml:"burst"`
	// Assured is how many requests a second a merchant may always send. While
	// others send some, too, more is let through as long as all events reach the
	// streams in time.
	Assured float64 `yaml:"assured"`
	// MaxInFlight is how many requests there may be at a time, at work or waiting
	// for their turn.
	MaxInFlight int `yaml:"max_in_flight"`
	// MaxPerCaller is how many of them may be one merchant's.
	MaxPerCaller int `yaml:"max_per_caller"`
	// AtWork is how many are worked on at a time.
	AtWork int `yaml:"at_work"`
	// AtWorkPerCaller is how many of these may be one merchant's.
	AtWorkPerCaller int `yaml:"at_work_per_caller"`
}

func (a API) check() error {
	switch {
	case a.Rate < 0 || a.Burst < 0 || a.Assured < 0 || a.MaxInFlight < 0 || a.MaxPerCaller < 0 || a.AtWork < 0 || a.AtWorkPerCaller < 0:
		return errors.New("api: want numbers above 0, or leave them out")
	case a.Burst > 0 && a.Burst < 1:
		return errors.New("api.burst: want at least 1 request, or leave it out for half a second's worth of api.rate")
	case a.Rate > 0 && a.Assured > a.Rate:
		return errors.New("api.assured: want no more than api.rate, which is what a merchant may send at most")
	case a.MaxInFlight > 0 && a.MaxPerCaller > a.MaxInFlight:
		return errors.New("api.max_per_caller: want no more than api.max_in_flight: one merchant would take the room of all")
	case a.AtWork > 0 && a.AtWorkPerCaller > a.AtWork:
		return errors.New("api.at_work_per_caller: want no more than api.at_work: one merchant would take the places of all")
	}
	return nil
}
