package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/centrifugal/centrifuge"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/push"
)

const centrifugePart = "push-centrifuge"

func centrifugePeer() pushPeer {
	return pushPeer{
		name: "centrifuge",
		settings: "Centrifuge 0.40.1, Centrifugo's library, on net/http: its handler of server-sent events, its memory broker without history, " +
			"pings without pongs; each reader is subscribed by the server to its own channel and to everybody's; published by POST to a handler of ours, over 64 connections at most",
		start: func(ctx context.Context, _ pushConfig, _ *engine.Engines) (pushServer, error) {
			p, err := startPart(ctx, centrifugePart)
			if err != nil {
				return nil, err
			}
			s := newOverHTTP(p)
			connect := url.QueryEscape(`{"id":1,"connect":{}}`)
			s.path = func(channel string) string { return "/events?channel=" + channel + "&cf_connect=" + connect }
			s.opened = func(line []byte) bool { return bytes.Contains(line, []byte(`"connect"`)) } // the answer to it
			s.request = func(ctx context.Context, address, channel string, data []byte) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/publish?channel="+channel, bytes.NewReader(data))
			}
			return s, nil
		},
	}
}

type ownChannel struct{}

// serveCentrifuge plays the server.
func serveCentrifuge(ctx context.Context, ready string) (err error) {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return err
	}
	node.OnConnecting(func(ctx context.Context, _ centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		own, _ := ctx.Value(ownChannel{}).(string)
		return centrifuge.ConnectReply{
			Credentials:   &centrifuge.Credentials{UserID: own},
			Subscriptions: map[string]centrifuge.SubscribeOptions{own: {}, push.Everybody: {}},
		}, nil
	})
	if err := node.Run(); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, node.Shutdown(ctx))
	}()
	events := centrifuge.NewSSEHandler(node, centrifuge.SSEConfig{PingPongConfig: centrifuge.PingPongConfig{PongTimeout: -1}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		events.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownChannel{}, r.URL.Query().Get("channel"))))
	})
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			_, err = node.Publish(r.URL.Query().Get("channel"), data)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return push.ServeReady(ctx, mux, atOnce(), ready)
}
