import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { openResources, type Resources, type Sent } from "./open-resources.ts";

let ask: Resources["ask"];
const resources = useFixture(openResources);
beforeAll(async () => {
  ask = resources.ask;
});

const keyed = (key: string, headers: Sent["headers"] = {}) => ({ headers: { ...headers, "Idempotency-Key": key } });
const newUser = () => ({ name: "Ada", email: `${randomUUID()}@example.org`, age: 1 });
const countOf = async (email: string) =>
  (await resources.owner.query("select from public.users where email = $1", [email])).rowCount;
const isReplay = ({ headers }: { headers: Headers }) => headers.get("idempotent-replayed") === "true";

describe("a write that is repeated with its Idempotency-Key", () => {
  test("creates one user, and gets the same response", async () => {
    const body = newUser();
    const sent = { method: "POST", body, ...keyed(randomUUID()) };
    const first = await ask("/users", sent);
    const again = await ask("/users", sent);
    expect([first.status, isReplay(first), isReplay(again)]).toEqual([201, false, true]);
    for (const name of ["location", "etag", "content-type"]) {
      expect(again.headers.get(name)).toBe(first.headers.get(name));
      expect(first.headers.get(name)).not.toBeNull();
    }
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(await countOf(body.email)).toBe(1);
    // Without the key the address is taken, so the second one above did not get as far as the table.
    expect((await ask("/users", { method: "POST", body })).status).toBe(409);
  });

  test("changes, acts and deletes once, in a nested collection too", async () => {
    const ann = await resources.addUser();
    const article = { title: "A title", content: "Words." };
    const nested = { method: "POST", body: article, as: ann, ...keyed(randomUUID()) };
    const made = await ask(`/api/v1/users/${ann}/articles`, nested);
    expect(made.status).toBe(201);
    expect((await ask(`/api/v1/users/${ann}/articles`, nested)).body).toEqual(made.body);
    const path = `/api/v1/articles/${made.body.id}`;

    const patch = { method: "PATCH", body: { title: "Another title" }, as: ann, ...keyed(randomUUID()) };
    const patched = await ask(path, patch);
    await ask(path, { method: "PATCH", body: { title: "A third title" }, as: ann });
    expect([(await ask(path, patch)).body, patched.body.title]).toEqual([patched.body, "Another title"]);
    expect((await ask(path, { as: ann })).body.title).toBe("A third title");

    const publish = { method: "POST", as: ann, ...keyed(randomUUID()) };
    const published = await ask(`${path}/publish`, publish);
    expect([published.status, isReplay(await ask(`${path}/publish`, publish))]).toEqual([200, true]);

    const removal = { method: "DELETE", as: ann, ...keyed(randomUUID()) };
    expect([(await ask(path, removal)).status, (await ask(path, removal)).status]).toEqual([204, 204]);
    expect((await ask(path, { method: "DELETE", as: ann })).status).toBe(404);
  });

  test("is a separate request with another body, query, version, If-Match or profile, and for another caller", async () => {
    const [ann, bob] = [await resources.addUser(), await resources.addUser()];
    const key = randomUUID();
    const path = `/users/${ann}`;
    const sent = { method: "PATCH", body: { age: 40 }, as: ann, ...keyed(key) };
    const first = await ask(path, sent);
    expect(first.status).toBe(200);
    const others: [string, Sent][] = [
      [path, { ...sent, body: { age: 41 } }],
      [`${path}?fields=age`, sent],
      [`/api/v2/users/${ann}`, sent],
      [path, { ...sent, ...keyed(key, { "If-Match": first.headers.get("etag")! }) }],
      [path, { ...sent, ...keyed(key, { "Content-Profile": "public" }) }],
    ];
    for (const [address, other] of others) {
      const { status, body } = await ask(address, other);
      expect([status, body.error.code]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
    }
    expect(isReplay(await ask(path, { ...sent, as: bob }))).toBe(false);
  });

  test("stores no errors, and an invalid key is refused", async () => {
    const body = newUser();
    const key = randomUUID();
    const refused = await ask("/users", { method: "POST", body: { ...body, age: -1 }, ...keyed(key) });
    expect(refused.status).toBe(400);
    expect((await ask("/users", { method: "POST", body, ...keyed(key) })).status).toBe(201);
    const bad = await ask("/users", { method: "POST", body: newUser(), ...keyed("two words") });
    expect([bad.status, bad.body.error.code]).toEqual([400, "INVALID_IDEMPOTENCY_KEY"]);
  });

  test("sent many times concurrently creates one user", async () => {
    const body = newUser();
    const sent = { method: "POST", body, ...keyed(randomUUID()) };
    const response = await Promise.all(Array.from({ length: 12 }, () => ask("/users", sent)));
    expect(new Set(response.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect([response[0]!.status, response.filter((one) => !isReplay(one)).length]).toEqual([201, 1]);
  });
});
