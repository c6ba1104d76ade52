import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { serveGraphQL } from "../../../graphql.ts";
import { SECRET } from "../../../secret.ts";
import { Wire } from "../socket/wire.ts";

/** An answer may have a quarter of it, one for an anonymous caller an eighth. */
const MOST_ANSWER_BYTES = 1_048_576;
const CONTENT = "x".repeat(1_000);

/** A computed column. */
const FAILING = `
  create function public.failing(article public.articles) returns text language plpgsql stable
    as $$ begin raise exception 'no value' using errcode = '22023'; end $$;
  grant execute on function public.failing to anon`;

const graphql = useFixture(() =>
  serveGraphQL({
    settings: { MAX_ANSWER_BYTES: String(MOST_ANSWER_BYTES) },
    before: FAILING,
  }),
);
beforeAll(async () => {
  await graphql.sql("insert into public.users (name, email) values ('Ann', 'ann@example.org')");
  await graphql.sql(
    `insert into public.articles (author_id, title, content, status)
     select 1, 'A long one', '${CONTENT}', 'PUBLISHED' from generate_series(1, 100)`,
  );
});

const token = () => jwt.sign({ role: "authenticated", sub: "1" }, SECRET);

/** Selects each row as often as it is asked for, under other names. */
function contents(rows: number, times: number): string {
  const names = Array.from({ length: times }, (_, index) => `c${index}: content`).join(" ");
  return `{ articles(first: ${rows}) { edges { node { ${names} } } } }`;
}

test("a response may have the row limit of an operation, half of it for an anonymous caller, and no more by aliases", async () => {
  const { data } = await graphql.ask(contents(10, 10));
  expect(data.articles.edges[9].node.c9).toBe(CONTENT);
  const { errors } = await graphql.ask(contents(10, 20));
  expect(errors[0].extensions.code).toBe("ANSWER_TOO_LARGE");
  expect(errors[0].message).toContain(String(MOST_ANSWER_BYTES / 8));
  expect((await graphql.ask(contents(10, 20), { token: token() })).errors).toBeUndefined();
  const { errors: tooLong } = await graphql.ask(contents(100, 20), { token: token() });
  expect(tooLong[0].message).toContain(String(MOST_ANSWER_BYTES / 4));
});

describe("an operation of an anonymous caller that is not compiled", () => {
  const documentOf = (roots: number, page = "first: 1") =>
    `{ ${Array.from({ length: roots }, (_, index) => `a${index}: articles(${page}) { edges { node { id } } }`).join(" ")} }`;
  const notCursor = 'first: 1, after: "no cursor"';

  test("may have fewer fields to plan than one of a signed-in caller, also with an anonymous account", async () => {
    expect((await graphql.ask(documentOf(33, notCursor))).errors[0].message).toContain("cursor");
    const { errors } = await graphql.ask(documentOf(34, notCursor));
    expect(errors[0].extensions.code).toBe("QUERY_TOO_COMPLEX");
    expect(errors[0].message).toContain("102 fields with subselections; 100 are allowed");
    const unnamed = jwt.sign({ role: "authenticated", sub: "1", is_anonymous: true }, SECRET);
    const ofAccount = await graphql.ask(documentOf(34, notCursor), { token: unnamed });
    expect(ofAccount.errors[0].extensions.code).toBe("QUERY_TOO_COMPLEX");
    const signedIn = await graphql.ask(documentOf(34, notCursor), { token: token() });
    expect(signedIn.errors[0].message).toContain("cursor");
    expect((await graphql.ask(documentOf(34))).errors).toBeUndefined();
  });

  test("is not planned after its statement has failed, either", async () => {
    const ask = (roots: number) => graphql.ask(documentOf(roots).replaceAll("node { id }", "node { failing }"));
    const [few, many] = [await ask(33), await ask(34)];
    expect(few.errors[0].message).toContain("no value");
    expect([many.data, many.errors[0].extensions.code]).toEqual([null, "QUERY_TOO_COMPLEX"]);
  });
});

describe.each(["graphql-transport-ws", "graphql-ws"] as const)("on a socket with %s", (protocol) => {
  const start = protocol === "graphql-ws" ? "start" : "subscribe";
  const open = async () => {
    const wire = await Wire.open(graphql.socketUrl, protocol);
    wire.say({ type: "connection_init" });
    await wire.hear();
    return wire;
  };

  test("a long message with very many values is refused before it is parsed", async () => {
    const wire = await open();
    wire.say({ type: start, id: "a", payload: { query: "{ __typename }", variables: { n: Array(50_001).fill(0) } } });
    expect(await wire.closed()).toMatchObject({ code: 4400, reason: expect.stringContaining("too many values") });
  });

  test("a short document does not overtake a long one", async () => {
    const wire = await open();
    const say = (id: string, length: number) =>
      wire.say({ type: start, id, payload: { query: "{ __typename }", variables: { text: "x".repeat(length) } } });
    for (const [id, length] of [
      ["a", 500_000],
      ["b", 1],
      ["c", 100_000],
      ["d", 1],
    ] as const)
      say(id, length);
    const answered: string[] = [];
    while (answered.length < 4) {
      const { id, type } = await wire.hear();
      if (type === "next" || type === "data") answered.push(id);
    }
    expect(answered).toEqual(["a", "b", "c", "d"]);
    wire.socket.terminate();
  });
});
