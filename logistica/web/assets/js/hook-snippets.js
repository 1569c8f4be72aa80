// Examples that verify a call after Standard Webhooks, by signature and
// language. Those in Python and for Node are run in a test.

const python = `import base64, hashlib, hmac, time

def verify(secret, headers, body):  # body: the bytes as they came
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{stamp}.".encode() + body
    want = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    given = headers["webhook-signature"].encode().split(b" ")
    return abs(time.time() - int(stamp)) < 300 and any(
        hmac.compare_digest(each, b"v1," + want) for each in given)
`;

const node = `import { createHmac, timingSafeEqual } from "node:crypto";

export function verify(secret, headers, body) { // body: a Buffer, as it came
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const stamp = headers["webhook-timestamp"];
  const want = createHmac("sha256", key)
    .update(\`\${headers["webhook-id"]}.\${stamp}.\`).update(body).digest();
  const same = (given) => given.length === want.length && timingSafeEqual(given, want);
  return Math.abs(Date.now() / 1000 - Number(stamp)) < 300 &&
    headers["webhook-signature"].split(" ").some((each) =>
      each.startsWith("v1,") && same(Buffer.from(each.slice(3), "base64")));
}
`;

const go = `import "github.com/waybillhq/waybill/webhook/sign"

v, err := sign.NewVerifier(os.Getenv("WEBHOOK_SECRET"))
// …
body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
if err := v.Verify(r.Header, body); err != nil {
	http.Error(w, err.Error(), http.StatusUnauthorized)
	return
}
`;

const pythonPair = `import base64, time
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def verify(public, headers, body):  # body: the bytes as they came
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix("whpk_")))
    stamp = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{stamp}.".encode() + body
    if abs(time.time() - int(stamp)) >= 300:
        return False
    for each in headers["webhook-signature"].split(" "):
        if each.startswith("v1a,"):
            try:
                key.verify(base64.b64decode(each[4:]), signed)
                return True
            except InvalidSignature:
                pass
    return False
`;

const nodePair = `import { createPublicKey, verify as check } from "node:crypto";

export function verify(publicKey, headers, body) { // body: a Buffer, as it came
  const x = Buffer.from(publicKey.replace("whpk_", ""), "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const stamp = headers["webhook-timestamp"];
  const signed = Buffer.concat([Buffer.from(\`\${headers["webhook-id"]}.\${stamp}.\`), body]);
  return Math.abs(Date.now() / 1000 - Number(stamp)) < 300 &&
    headers["webhook-signature"].split(" ").some((each) =>
      each.startsWith("v1a,") && check(null, signed, key, Buffer.from(each.slice(4), "base64")));
}
`;

export const snippets = {
  hmac: { Python: python, Node: node, Go: go },
  ed25519: { Python: pythonPair, Node: nodePair, Go: go },
};
