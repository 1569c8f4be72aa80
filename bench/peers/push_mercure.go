package main

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/dunglas/mercure"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/zap"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/push"
)

const (
	mercurePart = "push-mercure"
	mercurePath = "/.well-known/mercure"
)

// mercureKey signs who may publish; both ends are ours.
var mercureKey = []byte("the key of a measurement, and of nothing else")

func mercurePeer() pushPeer {
	return pushPeer{
		name: "mercure",
		settings: "Mercure 0.20.2 as a library on net/http: a hub with its local transport, which keeps nothing to resume from, without logs; " +
			"each reader has two topics, its own and everybody's; published by POST with a JWT, over 64 connections at most",
		start: func(ctx context.Context, _ pushConfig, _ *engine.Engines) (pushServer, error) {
			token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
				"mercure": map[string]any{"publish": []string{"*"}},
			}).SignedString(mercureKey)
			if err != nil {
				return nil, err
			}
			p, err := startPart(ctx, mercurePart)
			if err != nil {
				return nil, err
			}
			s := newOverHTTP(p)
			s.path = func(channel string) string { return mercurePath + "?topic=" + channel + "&topic=" + push.Everybody }
			s.opened = func(line []byte) bool { return bytes.Equal(line, []byte(":\n")) } // its first comment
			s.request = func(ctx context.Context, address, channel string, data []byte) (*http.Request, error) {
				form := url.Values{"topic": {channel}, "data": {string(data)}}.Encode()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+mercurePath, strings.NewReader(form))
				if err == nil {
					req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					req.Header.Set("Authorization", "Bearer "+token)
				}
				return req, err
			}
			return s, nil
		},
	}
}

// serveMercure plays the server.
func serveMercure(ctx context.Context, ready string) error {
	hub, err := mercure.NewHub(
		mercure.WithAnonymous(), mercure.WithPublisherJWT(mercureKey, "HS256"), mercure.WithLogger(zap.NewNop()))
	if err != nil {
		return err
	}
	return push.ServeReady(ctx, hub, atOnce(), ready)
}
