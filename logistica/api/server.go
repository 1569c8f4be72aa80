package api

import (
	"net/http"
	"time"
)

// NewServer is an http.Server with bounds that suit an API with streams.
//
// It has no ReadTimeout and no WriteTimeout: they would end every stream. The
// handler of [New] sets both deadlines itself, for each request that is none.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}
