/** The outcomes of one request, by caller. */
export type MatrixRow = {
  readonly interface: string;
  readonly action: string;
  readonly method: string;
  readonly path: string;
  /** JSON, or a GraphQL document. */
  readonly body: string;
  /** A text that the response to a read contains if the caller may read it. */
  readonly text: string | null;
  /** The table of a write, and the row unless one is created. */
  readonly written: string | null;
  /** "seen", "done", the status or code of the refusal, or "-" if nothing is seen or done. With USERS_ACCESS=open and owner. */
  readonly outcomes: { readonly open: readonly string[]; readonly owner: readonly string[] };
};

export const CALLERS = ["anon", "stranger", "owner", "admin", "service"] as const;

/** `{user}`, `{article}`, `{draft}`, `{comment}` (on the article) and `{hidden}` (a comment on the draft) belong to the caller "owner". */
export const MATRIX = readMatrix(`
/rest/v1
read a user               | GET /rest/v1/users?id=eq.{user}&select=id,name                  |                                              | ~Olga              | seen seen seen seen seen | seen seen seen seen seen
read all columns          | GET /rest/v1/users?id=eq.{user}                                 |                                              | ~Olga              | seen seen seen seen seen | seen seen seen seen seen
read an address           | GET /rest/v1/users?id=eq.{user}&select=email                    |                                              | ~example.org       | seen seen seen seen seen | 401 - seen seen seen
read an embedded user     | GET /rest/v1/articles?id=eq.{article}&select=title,users(*)     |                                              | ~Olga              | seen seen seen seen seen | seen seen seen seen seen
read no author            | GET /rest/v1/users?id=eq.{silent}&select=name                   |                                              | ~Silent            | seen seen seen seen seen | - seen seen seen seen
find by address           | GET /rest/v1/users?email=like.olga*&select=id                   |                                              | ~{user}            | seen seen seen seen seen | 401 - seen seen seen
read an embedded address  | GET /rest/v1/articles?id=eq.{article}&select=title,users(email) |                                              | ~example.org       | seen seen seen seen seen | 401 - seen seen seen
create a user             | POST /rest/v1/users                                             | {"name": "N", "email": "n{new}@example.org"} | users              | 401 403 403 done done    | 401 403 403 done done
change a user             | PATCH /rest/v1/users?id=eq.{user}                               | {"name": "Changed"}                          | users {user}       | - - done done done       | - - done done done
change an address         | PATCH /rest/v1/users?id=eq.{user}                               | {"email": "c{new}@example.org"}              | users {user}       | - - done done done       | - - done done done
delete a user             | DELETE /rest/v1/users?id=eq.{user}                              |                                              | users {user}       | - - done done done       | - - done done done
read a draft              | GET /rest/v1/articles?id=eq.{draft}                             |                                              | ~written           | seen seen seen seen seen | - - seen seen seen
create a draft            | POST /rest/v1/articles                                          | {"title": "Draft", "content": ""}            | articles           | 401 done done done 400   | 401 done done done 400
publish a draft           | PATCH /rest/v1/articles?id=eq.{draft}                           | {"status": "PUBLISHED"}                      | articles {draft}   | 401 - done done done     | 401 - done done done
delete a draft            | DELETE /rest/v1/articles?id=eq.{draft}                          |                                              | articles {draft}   | 401 - done done done     | 401 - done done done
read a comment            | GET /rest/v1/comments?id=eq.{comment}                           |                                              | ~Seen              | seen seen seen seen seen | seen seen seen seen seen
read a comment on a draft | GET /rest/v1/comments?id=eq.{hidden}                            |                                              | ~Unseen            | seen seen seen seen seen | - - seen seen seen
comment                   | POST /rest/v1/comments                                          | {"article_id": {article}, "content": "New."} | comments           | 401 done done done 400   | 401 done done done 400
comment on a draft        | POST /rest/v1/comments                                          | {"article_id": {draft}, "content": "New."}   | comments           | 401 done done done 400   | 401 403 done done 400
change a comment          | PATCH /rest/v1/comments?id=eq.{comment}                         | {"content": "Changed."}                      | comments {comment} | 401 - done done done     | 401 - done done done
delete a comment          | DELETE /rest/v1/comments?id=eq.{comment}                        |                                              | comments {comment} | 401 - done done done     | 401 - done done done

/users
list users        | GET /users?limit=1000 |                                                    | ~Olga        | seen seen seen seen seen | 401 seen seen seen seen
read a user       | GET /users/{user}     |                                                    | ~Olga        | seen seen seen seen seen | 401 seen seen seen seen
read an address   | GET /users/{user}     |                                                    | ~example.org | seen seen seen seen seen | 401 - seen seen seen
create a user     | POST /users           | {"name": "N", "email": "n{new}@example.org"}       | users        | done done done done done | done done done done done
change a user     | PATCH /users/{user}   | {"name": "Changed"}                                | users {user} | done done done done done | 401 403 done done done
change an address | PATCH /users/{user}   | {"email": "c{new}@example.org"}                    | users {user} | done done done done done | 401 403 done done done
replace a user    | PUT /users/{user}     | {"name": "Changed", "email": "c{new}@example.org"} | users {user} | done done done done done | 401 403 done done done
delete a user     | DELETE /users/{user}  |                                                    | users {user} | done done done done done | 401 403 done done done

/api/v1
list users                | GET /api/v1/users?limit=1000                             |                                              | ~Olga              | seen seen seen seen seen | 401 seen seen seen seen
read a user               | GET /api/v2/users/{user}                                 |                                              | ~Olga              | seen seen seen seen seen | 401 seen seen seen seen
find by name              | GET /api/v1/users?name=Silent                              |                                              | ~Silent            | seen seen seen seen seen | 401 seen seen seen seen
read an author            | GET /api/v1/articles/{article}?fields=title,author.name  |                                              | ~Olga              | seen seen seen seen seen | seen seen seen seen seen
read the author's address | GET /api/v1/articles/{article}?fields=title,author.email |                                              | ~example.org       | seen seen seen seen seen | 400 - seen seen seen
create a user             | POST /api/v1/users                                       | {"name": "N", "email": "n{new}@example.org"} | users              | done done done done done | done done done done done
change a user             | PATCH /api/v2/users/{user}                               | {"name": "Changed"}                          | users {user}       | done done done done done | 401 403 done done done
delete a user             | DELETE /api/v1/users/{user}                              |                                              | users {user}       | done done done done done | 401 403 done done done
list articles of a user   | GET /api/v1/users/{user}/articles                        |                                              | ~written           | seen seen seen seen seen | - - seen seen seen
read a draft              | GET /api/v1/articles/{draft}                             |                                              | ~written           | seen seen seen seen seen | 404 404 seen seen seen
create a draft            | POST /api/v1/articles                                    | {"title": "Draft", "content": ""}            | articles           | 401 done done done 400   | 401 done done done 400
publish a draft           | POST /api/v1/articles/{draft}/publish                    |                                              | articles {draft}   | 401 403 done done done   | 404 404 done done done
change a draft            | PATCH /api/v1/articles/{draft}                           | {"title": "Changed"}                         | articles {draft}   | 401 403 done done done   | 401 404 done done done
delete a draft            | DELETE /api/v1/articles/{draft}                          |                                              | articles {draft}   | 401 403 done done done   | 401 404 done done done
read a comment            | GET /api/v1/comments/{comment}                           |                                              | ~Seen              | seen seen seen seen seen | seen seen seen seen seen
read a comment on a draft | GET /api/v1/comments/{hidden}                            |                                              | ~Unseen            | seen seen seen seen seen | 404 404 seen seen seen
list comments on a draft  | GET /api/v1/articles/{draft}/comments                    |                                              | ~Unseen            | seen seen seen seen seen | 404 404 seen seen seen
comment                   | POST /api/v1/articles/{article}/comments                 | {"content": "New."}                          | comments           | 401 done done done 400   | 401 done done done 400
comment on a draft        | POST /api/v1/articles/{draft}/comments                   | {"content": "New."}                          | comments           | 401 done done done 400   | 401 404 done done 400
change a comment          | PATCH /api/v1/comments/{comment}                         | {"content": "Changed."}                      | comments {comment} | 401 403 done done done   | 401 403 done done done
delete a comment          | DELETE /api/v1/comments/{comment}                        |                                              | comments {comment} | 401 403 done done done   | 401 403 done done done

GraphQL
list users                | POST /graphql | { users(limit: 1000) { name } }                                                   | ~Olga            | seen seen seen seen seen                       | seen seen seen seen seen
read a user               | POST /graphql | { user(id: {user}) { name } }                                                     | ~Olga            | seen seen seen seen seen                       | seen seen seen seen seen
read an address           | POST /graphql | { user(id: {user}) { name email } }                                               | ~example.org     | seen seen seen seen seen                       | FORBIDDEN* - seen seen seen
read an author            | POST /graphql | { article(id: {article}) { author { name } } }                                    | ~Olga            | seen seen seen seen seen                       | seen seen seen seen seen
read the author's address | POST /graphql | { article(id: {article}) { author { name email } } }                              | ~example.org     | seen seen seen seen seen                       | FORBIDDEN* - seen seen seen
read no author            | POST /graphql | { user(id: {silent}) { name } }                                                   | ~Silent          | seen seen seen seen seen                       | - seen seen seen seen
read oneself              | POST /graphql | { me { name } }                                                                   | ~Olga            | AUTH_REQUIRED - seen - AUTH_REQUIRED           | AUTH_REQUIRED - seen - AUTH_REQUIRED
create a user             | POST /graphql | mutation { createUser(input: {name: "N", email: "n{new}@example.org"}) { id } }   | users            | done done done done done                       | done done done done done
read a draft              | POST /graphql | { article(id: {draft}) { title } }                                                | ~written         | seen seen seen seen seen                       | - - seen seen seen
list drafts               | POST /graphql | { user(id: {user}) { articles { title } } }                                       | ~written         | seen seen seen seen seen                       | - - seen seen seen
find drafts               | POST /graphql | { search(keyword: "being written") { id } }                                       | ~"{draft}"       | seen seen seen seen seen                       | - - seen seen seen
create a draft            | POST /graphql | mutation { createArticle(input: {title: "Draft", content: ""}) { success } }      | articles         | - done done done -                             | - done done done -
publish a draft           | POST /graphql | mutation { publishArticle(id: {draft}) { id } }                                   | articles {draft} | AUTH_REQUIRED PERMISSION_DENIED done done done | AUTH_REQUIRED RESOURCE_NOT_FOUND done done done
change a draft            | POST /graphql | mutation { updateArticle(id: {draft}, input: {title: "Changed"}) { id } }         | articles {draft} | AUTH_REQUIRED PERMISSION_DENIED done done done | AUTH_REQUIRED RESOURCE_NOT_FOUND done done done
delete a draft            | POST /graphql | mutation { deleteArticle(id: {draft}) }                                           | articles {draft} | AUTH_REQUIRED PERMISSION_DENIED done done done | AUTH_REQUIRED - done done done
read a comment            | POST /graphql | { article(id: {article}) { comments { content } } }                               | ~Seen            | seen seen seen seen seen                       | seen seen seen seen seen
read a comment on a draft | POST /graphql | { article(id: {draft}) { comments { content } } }                                 | ~Unseen          | seen seen seen seen seen                       | - - seen seen seen
comment                   | POST /graphql | mutation { createComment(input: {articleId: {article}, content: "New."}) { id } } | comments         | AUTH_REQUIRED done done done AUTH_REQUIRED     | AUTH_REQUIRED done done done AUTH_REQUIRED
comment on a draft        | POST /graphql | mutation { createComment(input: {articleId: {draft}, content: "New."}) { id } }   | comments         | AUTH_REQUIRED done done done AUTH_REQUIRED     | AUTH_REQUIRED RESOURCE_NOT_FOUND done done AUTH_REQUIRED
`);

function readMatrix(text: string): MatrixRow[] {
  return text
    .trim()
    .split("\n\n")
    .flatMap((block) => {
      const [heading = "", ...lines] = block.split("\n");
      return lines.map((line) =>
        readRow(
          heading.split("|")[0]!.trim(),
          line.split("|").map((cell) => cell.trim()),
        ),
      );
    });
}

function readRow(
  name: string,
  [action = "", request = "", body = "", target = "", open = "", owner = ""]: string[],
): MatrixRow {
  const [method = "", path = ""] = request.split(" ");
  const isRead = target.startsWith("~");
  return {
    interface: name,
    action,
    method,
    path,
    body,
    text: isRead ? target.slice(1) : null,
    written: isRead ? null : target,
    outcomes: { open: open.split(" "), owner: owner.split(" ") },
  };
}
