import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../../../fixture.ts";
import { type GraphQLService, serveGraphQL } from "../../../graphql.ts";

const HASH = "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38";

const folder = useFolder("operations-");
beforeAll(() => writeFile(join(folder, `${HASH}.graphql`), "query Known($id: ID!) { user(id: $id) { name } }"));
const graphql = useFixture(() =>
  serveGraphQL({
    settings: { GRAPHQL_PERSISTED_OPERATIONS: folder },
    before: "insert into public.users (name, email) values ('Ann', 'ann@example.org')",
  }),
);
const strict = useFixture(() =>
  serveGraphQL({
    database: graphql.database,
    settings: { GRAPHQL_PERSISTED_OPERATIONS: folder, GRAPHQL_PERSISTED_ONLY: "true" },
  }),
);

async function post(service: GraphQLService, body: object) {
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { data?: unknown; errors?: { message: string; extensions: { code: string } }[] };
}

const variables = { id: 1 };
const ofApollo = (sha256Hash: unknown) => ({ persistedQuery: { version: 1, sha256Hash } });
const ann = { data: { user: { name: "Ann" } } };

describe("a registered operation", () => {
  test("is selected by its id, as in the standard and as by Apollo", async () => {
    for (const service of [graphql, strict]) {
      expect(await post(service, { documentId: HASH, variables })).toEqual(ann);
      expect(await post(service, { extensions: ofApollo(HASH), variables })).toEqual(ann);
    }
  });

  test("may be requested by GET, so that responses can be cached", async () => {
    const extensions = JSON.stringify(ofApollo(HASH));
    const response = await fetch(`${graphql.url}?${new URLSearchParams({ extensions, variables: '{"id":1}' })}`);
    expect(await response.json()).toEqual(ann);
  });

  test("that was added while the service runs is found", async () => {
    expect((await post(graphql, { documentId: "later" })).errors?.[0]?.extensions.code).toBe(
      "PERSISTED_QUERY_NOT_FOUND",
    );
    await writeFile(join(folder, "later.graphql"), "{ __typename }");
    expect(await post(graphql, { documentId: "later" })).toEqual({ data: { __typename: "Query" } });
  });

  test.each(["unknown", "", "../secret", `../${HASH}`, "/etc/passwd", "a\u0000b", "x".repeat(1000)])(
    "that is unknown (%j) is refused with the error code that clients expect",
    async (id) => {
      const { errors } = await post(graphql, { extensions: ofApollo(id) });
      expect(errors).toMatchObject([
        { message: "PersistedQueryNotFound", extensions: { code: "PERSISTED_QUERY_NOT_FOUND" } },
      ]);
    },
  );
});

describe("any other operation", () => {
  test("runs, unless only registered ones are allowed", async () => {
    const query = "{ user(id: 1) { name } }";
    expect(await post(graphql, { query })).toEqual(ann);
    expect(await post(strict, { query })).toMatchObject({ errors: [{ extensions: { code: "PERMISSION_DENIED" } }] });
  });

  test("cannot use the id of a registered one", async () => {
    const query = "{ user(id: 1) { email } }";
    expect(await post(strict, { query, documentId: HASH, variables })).toEqual(ann);
  });
});

test("without a folder an id is refused, and a missing folder fails the start", async () => {
  const plain = await serveGraphQL({ database: graphql.database });
  expect(await post(plain, { extensions: ofApollo(HASH) })).toMatchObject({
    errors: [{ message: "PersistedQueryNotSupported" }],
  });
  await plain.stop();
  const settings = { GRAPHQL_PERSISTED_OPERATIONS: join(folder, "nowhere") };
  await expect(serveGraphQL({ database: graphql.database, settings })).rejects.toThrow("is not a folder");
});
