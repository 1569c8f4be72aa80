package push

import _ "embed" // for ClientJS

// ClientJS is an ES module that reads a hub's stream in a browser with fetch,
// since EventSource cannot send an Authorization header. It exports subscribe.
//
//go:embed client/sse.js
var ClientJS []byte
