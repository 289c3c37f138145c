// Handlers of couchdb-sidecar in Go: nothing but the standard library.
//
//	WEBHOOK_SECRET=whsec_… go run handlers.go [port]
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Document keeps every field, also those that this program does not know.
type Document map[string]any

// Refused says that another try would not mend it: the document goes into `error`, with this code and reason.
type Refused struct{ Code, Reason string }

func (r Refused) Error() string { return r.Reason }

// orderPaid returns the next document. The key is the same for every try of this order: give it to the payment provider.
func orderPaid(order Document, key string) (Document, error) {
	if total, _ := order["total"].(float64); total <= 0 {
		return nil, Refused{"nothing_to_pay", fmt.Sprintf("expected a total above 0, got %v", order["total"])}
	}
	order["state"] = "invoiced"
	order["invoice"] = "invoice-" + key[:8]
	return order, nil
}

var handlers = map[string]func(Document, string) (Document, error){"/order-paid": orderPaid}

// isSigned follows Standard Webhooks: https://www.standardwebhooks.com
func isSigned(secret []byte, header http.Header, body []byte) bool {
	at, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("webhook-id"), at, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, sent := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(expected), []byte(sent)) {
			return true
		}
	}
	return false
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	answer(w, status, map[string]string{"code": code, "detail": detail})
}

func main() {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(secret) == 0 {
		log.Fatal("WEBHOOK_SECRET: expected a secret such as whsec_…")
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !isSigned(secret, r.Header, body) {
			problem(w, 401, "not_signed", "expected a signature with our secret")
			return
		}
		handler, order := handlers[r.URL.Path], Document{}
		if handler == nil {
			problem(w, 404, "no_handler", "there is no handler at "+r.URL.Path)
			return
		}
		if err := json.Unmarshal(body, &order); err != nil {
			problem(w, 400, "no_document", err.Error())
			return
		}
		next, err := handler(order, r.Header.Get("webhook-id"))
		if refused, ok := err.(Refused); ok {
			problem(w, 422, refused.Code, refused.Reason)
		} else if err != nil { // it is tried again
			problem(w, 500, "failed", err.Error())
		} else {
			answer(w, 200, next)
		}
	}
	port := "8080"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, http.HandlerFunc(serve)))
}
