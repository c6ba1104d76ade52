// The same by hand in Go with net/http and pgx: prepared statements, and the caller's role and claims sent with the statement in one
// batch, which is one transaction and one round trip.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const become = "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)"

var (
	pool   *pgxpool.Pool
	secret = []byte(os.Getenv("JWT_SECRET"))
)

type item struct {
	ID        int64     `json:"id"`
	OwnerID   string    `json:"owner_id"`
	Title     string    `json:"title"`
	Body      *string   `json:"body"`
	CreatedAt time.Time `json:"created_at"`
}

type commentedItem struct {
	ID       int64           `json:"id"`
	Title    string          `json:"title"`
	Comments json.RawMessage `json:"comments"`
}

type comment struct {
	ID      int64           `json:"id"`
	Content string          `json:"content"`
	Item    json.RawMessage `json:"items"`
}

type event struct {
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload"`
}

func claimsOf(request *http.Request) (string, string, error) {
	claims := jwt.MapClaims{}
	token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	_, err := jwt.ParseWithClaims(token, claims, func(token *jwt.Token) (interface{}, error) {
		if token.Method != jwt.SigningMethodHS256 {
			return nil, errors.New("the algorithm must be HS256")
		}
		return secret, nil
	})
	if err != nil {
		return "", "", err
	}
	text, err := json.Marshal(claims)
	return claims["role"].(string), string(text), err
}

func asCaller(request *http.Request, read func(pgx.Rows) error, statement string, values ...interface{}) error {
	role, claims, err := claimsOf(request)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(become, role, claims)
	batch.Queue(statement, values...)
	results := pool.SendBatch(context.Background(), batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func respond(response http.ResponseWriter, err error, rows interface{}) {
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "application/json; charset=utf-8")
	json.NewEncoder(response).Encode(rows)
}

func items(response http.ResponseWriter, request *http.Request) {
	words := strings.Split(strings.TrimPrefix(request.URL.Path, "/items/"), "/")
	id, _ := strconv.ParseInt(words[0], 10, 64)
	if len(words) > 1 {
		found := []commentedItem{}
		err := asCaller(request, func(rows pgx.Rows) error {
			var row commentedItem
			err := rows.Scan(&row.ID, &row.Title, &row.Comments)
			found = append(found, row)
			return err
		}, `select i.id, i.title,
			coalesce(json_agg(json_build_object('id', c.id, 'content', c.content)) filter (where c.id is not null), '[]')
			from items i left join comments c on c.item_id = i.id where i.id = $1 group by i.id`, id)
		respond(response, err, found)
		return
	}
	found := []item{}
	err := asCaller(request, func(rows pgx.Rows) error {
		var row item
		err := rows.Scan(&row.ID, &row.OwnerID, &row.Title, &row.Body, &row.CreatedAt)
		found = append(found, row)
		return err
	}, "select id, owner_id::text, title, body, created_at from items where id = $1", id)
	respond(response, err, found)
}

func comments(response http.ResponseWriter, request *http.Request) {
	after, _ := strconv.ParseInt(request.URL.Query().Get("after"), 10, 64)
	found := []comment{}
	err := asCaller(request, func(rows pgx.Rows) error {
		var row comment
		err := rows.Scan(&row.ID, &row.Content, &row.Item)
		found = append(found, row)
		return err
	}, `select c.id, c.content, json_build_object('id', i.id, 'title', i.title)
		from comments c left join items i on i.id = c.item_id where c.id > $1 order by c.id limit 20`, after)
	respond(response, err, found)
}

func insert(response http.ResponseWriter, request *http.Request, statement string, values ...interface{}) {
	err := asCaller(request, func(pgx.Rows) error { return nil }, statement, values...)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.WriteHeader(http.StatusCreated)
}

func insertOne(response http.ResponseWriter, request *http.Request) {
	var sent event
	if err := json.NewDecoder(request.Body).Decode(&sent); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	insert(response, request, "insert into events (kind, payload) values ($1, $2)", sent.Kind, []byte(sent.Payload))
}

func insertMany(response http.ResponseWriter, request *http.Request) {
	sent, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	insert(response, request, `insert into events (kind, payload)
		select kind, payload from json_to_recordset($1::json) as event(kind text, payload jsonb)`, sent)
}

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	size, _ := strconv.Atoi(os.Getenv("POOL_SIZE"))
	config.MaxConns = int32(size)
	if pool, err = pgxpool.ConnectConfig(context.Background(), config); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/items/", items)
	http.HandleFunc("/comments", comments)
	http.HandleFunc("/events", insertOne)
	http.HandleFunc("/events/many", insertMany)
	http.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
