# SPDX-License-Identifier: BSD-2-Clause
"""openssl: digests, ciphers with a fixed key, key generation, certificates, a TLS connection."""
import harness

SCRIPT = r'''
set -e
seq 200000 > data; openssl dgst -sha256 data; openssl dgst -sha3-512 data
openssl enc -aes-256-cbc -K $(printf '%064d' 7) -iv $(printf '%032d' 9) -in data -out data.enc; openssl dgst -md5 data.enc
openssl enc -d -aes-256-cbc -K $(printf '%064d' 7) -iv $(printf '%032d' 9) -in data.enc | cmp - data && echo decrypted
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem 2>/dev/null
openssl dgst -sha256 -sign rsa.pem -out sig data; openssl pkey -in rsa.pem -pubout -out pub.pem
openssl dgst -sha256 -verify pub.pem -signature sig data
openssl ecparam -genkey -name prime256v1 -noout -out ec.pem
openssl req -new -x509 -key ec.pem -subj /CN=localhost -days 2 -out cert.pem; openssl verify -CAfile cert.pem cert.pem
openssl x509 -in cert.pem -noout -subject; openssl prime 1000000007; openssl rand -hex 20 | wc -c
openssl asn1parse -in cert.pem | wc -l; openssl ciphers ALL | tr ':' '\n' | wc -l; openssl base64 -in data | cksum
openssl s_server -unix tls.sock -cert cert.pem -key ec.pem -www -quiet >/dev/null 2>&1 & s=$!
get() { printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -unix tls.sock -CAfile cert.pem -verify_return_error -quiet 2>/dev/null | grep -c 'HTTP/1.0 200'; }
for i in $(seq 1000); do get >first && break; sleep 0.05; done # until it listens
cat first; for i in 1 2; do get; done
kill $s; wait $s || echo "server ended with $?"
openssl dgst -sha256 /no/such/file 2>/dev/null || echo "status $?"
'''


def run(ctx):
    harness.need('openssl')
    ctx.run(['bash', '-c', SCRIPT], keep_stderr=False, timeout=240)
