import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { openResources, type Sent } from "../rest-gateway/resource/open-resources.ts";

/** Shorter than a body may be, so that the constraint refuses it. */
const LONG = "x".repeat(900_000);
const ADMINISTRATOR = { role: "service_role" };

let author: number;
const resources = useFixture(() => openResources({ settings: { REST_REQUIRE_APIKEY: "false" } }));
beforeAll(async () => {
  author = await resources.addUser();
});

const post = (path: string, body: object, sent: Sent = {}) => resources.ask(path, { method: "POST", body, ...sent });
const graphql = async (query: string, variables: object, sent: Sent = {}) =>
  (await post("/graphql", { query, variables }, sent)).body;

describe("a name of 900 kB", () => {
  const input = { name: LONG, email: "long@example.org" };
  const message = "Give a name of at most 200 characters.";

  test("is refused by /users, with the field and the message", async () => {
    const { status, body } = await post("/users", input);
    expect([status, body.error.code, body.error.details]).toEqual([
      400,
      "VALIDATION_ERROR",
      [{ field: "name", message }],
    ]);
  });

  test("is refused by GraphQL, and the users stay readable", async () => {
    const { errors } = await graphql("mutation ($input: CreateUserInput!) { createUser(input: $input) { id } }", {
      input,
    });
    expect(errors).toMatchObject([{ message, extensions: { code: "VALIDATION_ERROR", field: "name" } }]);
    expect(await graphql("{ users { name } }", {})).toEqual({ data: { users: [{ name: "Ada" }] } });
  });

  test("is refused by the table interface, even to the service role", async () => {
    const { status, body } = await post("/rest/v1/users", input, { as: ADMINISTRATOR });
    expect([status, body.code]).toEqual([400, "23514"]);
    expect(body.message).toContain("users_name_max_length");
  });

  test("is refused at registration", async () => {
    const { status, body } = await post("/auth/register", {
      name: "x".repeat(201),
      email: "long@example.org",
      password: "Correct-horse-7",
    });
    expect([status, body.error.code, body.error.details]).toEqual([
      400,
      "VALIDATION_ERROR",
      [{ field: "name", message }],
    ]);
  });
});

describe("a title of 900 kB", () => {
  const input = { title: LONG, content: "Text" };
  const faults = [{ field: "title", message: "Give a title of at most 300 characters." }];

  test("is refused by /api/v1 with 422", async () => {
    const { status, body } = await post("/api/v1/articles", input, { as: author });
    expect([status, body.errors]).toEqual([422, faults]);
  });

  test("is an error of the field in createArticle's result", async () => {
    const query = `mutation ($input: CreateArticleInput!) {
      createArticle(input: $input) { success article { id } errors { field message } }
    }`;
    const { data } = await graphql(query, { input }, { as: author });
    expect(data.createArticle).toEqual({ success: false, article: null, errors: faults });
  });
});

describe("a row that exceeded the limits before they were added", () => {
  test("is kept, is readable, and can be shortened and deleted", async () => {
    const { owner, ask } = resources;
    const { rows: rules } = await owner.query(
      `select pg_get_constraintdef(oid) as rule from pg_constraint
       where conrelid = 'public.users'::regclass and conname = 'users_name_max_length'`,
    );
    await owner.query("alter table public.users drop constraint users_name_max_length");
    const { rows } = await owner.query(
      "insert into public.users (name, email) values (repeat('n', 300), 'old@example.org') returning id",
    );
    const path = `/users/${rows[0].id}`;
    await owner.query(`alter table public.users add constraint users_name_max_length ${rules[0].rule}`);

    expect((await ask(path)).body.name).toHaveLength(300);
    const change = (body: object) => ask(path, { method: "PATCH", body, as: ADMINISTRATOR });
    expect((await change({ age: 7 })).status).toBe(400);
    expect((await change({ name: "Short", age: 7 })).body).toMatchObject({ name: "Short", age: 7 });
    expect((await ask(path, { method: "DELETE", as: ADMINISTRATOR })).status).toBe(204);
  });
});
