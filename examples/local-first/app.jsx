import { count, eq, useLiveQuery } from "@tanstack/react-db";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { openCollections } from "./collections.js";
import { Outbox } from "./outbox.js";
import { Session } from "./session.js";

const { url, key } = await (await fetch("config.json")).json();
const session = new Session(url, key);
const outbox = new Outbox(sendBatch);

/** All operations in one transaction; resolves with the first row of each response. */
async function sendBatch(operations, batchKey) {
  const headers = { Prefer: "return=representation" };
  const response = await fetch(`${url}/rest/v1/`, {
    method: "POST",
    headers: {
      "Content-Type": "application/vnd.batch+json",
      "Idempotency-Key": batchKey,
      ...session.headers,
    },
    body: JSON.stringify(operations.map((operation) => ({ ...operation, headers }))),
  });
  const body = await response.json();
  if (response.ok) return body.map(({ body: rows }) => rows[0]);
  const isFinal = response.status < 500 && response.status !== 429;
  throw Object.assign(new Error(body.message), { isFinal });
}

/** The newest articles with their authors and the number of their comments, of rows that are in the browser. */
function useArticles({ articles, users, comments }) {
  const { data } = useLiveQuery(
    (query) => {
      const counts = query
        .from({ comment: comments })
        .groupBy(({ comment }) => comment.article_id)
        .select(({ comment }) => ({ article_id: comment.article_id, comments: count(comment.id) }));
      return query
        .from({ article: articles })
        .leftJoin({ author: users }, ({ article, author }) => eq(article.author_id, author.id))
        .leftJoin({ counted: counts }, ({ article, counted }) => eq(article.id, counted.article_id))
        .orderBy(({ article }) => article.created_at, "desc")
        .select(({ article, author, counted }) => ({
          id: article.id,
          title: article.title,
          author: author?.name,
          comments: counted?.comments,
        }));
    },
    [articles, users, comments],
  );
  return data;
}

function Page() {
  const [user, setUser] = useState(session.user);
  const [problem, setProblem] = useState(null);
  const attempt = (work) =>
    work().then(
      () => setProblem(null),
      ({ message }) => setProblem(message),
    );
  const signIn = ({ email, password }) =>
    attempt(async () => {
      await session.signIn(email, password);
      setUser(session.user);
    });
  return (
    <>
      <header>
        <h1>Articles</h1>
        <p>{user ? `Signed in as ${user.name}` : "Not signed in"}</p>
      </header>
      {problem && <p role="alert">{problem}</p>}
      {user ? (
        <Articles user={user} attempt={attempt} />
      ) : (
        <Form fields={{ email: "email", password: "password" }} label="Sign in" onSubmit={signIn} />
      )}
    </>
  );
}

function Articles({ user, attempt }) {
  const [collections] = useState(() => openCollections(url, session.headers, (operation) => outbox.add(operation)));
  const articles = useArticles(collections);
  // The database gives the real keys.
  const insert = (collection, row) => attempt(() => collection.insert({ id: -Date.now(), ...row }).isPersisted.promise);
  const publish = ({ title }) => {
    const row = { title, status: "PUBLISHED", author_id: user.id, created_at: new Date().toISOString() };
    return insert(collections.articles, row);
  };
  const comment = (article_id) => insert(collections.comments, { article_id, content: "Read." });
  return (
    <>
      <Form fields={{ title: "text" }} label="Publish" onSubmit={publish} />
      <ul>
        {articles.map(({ id, title, author, comments = 0 }) => (
          <li key={id}>
            <h2>{title}</h2>
            <p>
              {author} · {comments} {comments === 1 ? "comment" : "comments"}
              {id < 0 && " · not sent yet"}
            </p>
            {id > 0 && (
              <button type="button" onClick={() => comment(id)}>
                Comment
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Form({ fields, label, onSubmit }) {
  const submit = (event) => {
    event.preventDefault();
    void onSubmit(Object.fromEntries(new FormData(event.target)));
    event.target.reset();
  };
  return (
    <form onSubmit={submit}>
      {Object.entries(fields).map(([name, type]) => (
        <label key={name}>
          {name[0].toUpperCase() + name.slice(1)} <input name={name} type={type} required />
        </label>
      ))}
      <button type="submit">{label}</button>
    </form>
  );
}

createRoot(document.body).render(<Page />);
if (session.user) void outbox.flush();
