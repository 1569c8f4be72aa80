package web

import "github.com/waybillhq/waybill/push"

// streamClient is the browser's half of the event stream, under the path that
// the pages' modules import it by.
func streamClient() map[string][]byte {
	return map[string][]byte{"push/sse.js": push.ClientJS}
}
