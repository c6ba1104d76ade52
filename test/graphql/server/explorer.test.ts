import { get } from "node:http";
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";

const graphql = useFixture(() => serveGraphQL({ template: "empty" }));

const ask = (path: string, options: RequestInit = {}) => fetch(`${graphql.service.url}${path}`, options);

describe("the explorer", () => {
  test("is a page that loads only from this server, and whose policy allows no more", async () => {
    const response = await ask("/graphiql");
    const html = await response.text();
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(html.match(/https?:\/\//g)).toBeNull();
    const policy = response.headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe-eval");
    expect(/script-src ([^;]*)/.exec(policy)![1]).toBe("'self'");
  });

  test("opens with a query of the schema while the caller may read no table", async () => {
    expect(await (await ask("/graphiql")).text()).toContain("query Fields {");
    expect((await graphql.ask("{ __typename }")).data).toEqual({ __typename: "Query" });
  });

  test("opens with a query over the tables that the caller may read", async () => {
    await graphql.sql(`
      create table public.films (id int primary key, title text, cost int);
      create table public.diaries (id int primary key, entry text);
      grant select (id, title) on public.films to anon;
      grant select on public.films, public.diaries to authenticated`);
    const queryOf = async (headers: Record<string, string>) => {
      const page = await (await ask("/graphiql", { headers })).text();
      const settings = /<script type="application\/json" id="settings">(.*)<\/script>/.exec(page)![1]!;
      return (JSON.parse(settings) as { query: string }).query.replace(/^#.*\n/gm, "").replaceAll(/\s+/g, " ");
    };
    const anonymous = "films(first: 5) { totalCount edges { node { id title } } }";
    await expect.poll(() => queryOf({})).toBe(` query Tables { ${anonymous} }`);
    const signedIn = await queryOf({ Authorization: `Bearer ${tokenFor(1)}` });
    expect(signedIn).toContain("diaries(first: 5) { totalCount edges { node { id entry } } }");
    expect(signedIn).toContain("films(first: 5) { totalCount edges { node { id title cost } } }");
    expect((await graphql.ask(await queryOf({}))).data).toEqual({ films: { totalCount: 0, edges: [] } });
  });

  test("serves its files, compressed when accepted, with ETags", async () => {
    const plain = await ask("/graphiql/static/graphiql.js", { headers: { "Accept-Encoding": "identity" } });
    const text = await plain.text();
    expect(plain.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(plain.headers.get("content-encoding")).toBeNull();

    const compressed = await new Promise<{ encoding: unknown; body: Buffer }>((resolve, reject) => {
      const url = `${graphql.service.url}/graphiql/static/graphiql.js`;
      get(url, { headers: { "Accept-Encoding": "br" } }, async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        resolve({ encoding: response.headers["content-encoding"], body: Buffer.concat(chunks) });
      }).on("error", reject);
    });
    expect(compressed.encoding).toBe("br");
    expect(brotliDecompressSync(compressed.body).toString()).toBe(text);

    const again = await ask("/graphiql/static/graphiql.js", {
      headers: { "If-None-Match": plain.headers.get("etag")! },
    });
    expect(again.status).toBe(304);
  });

  test.each([
    "/graphiql/",
    "/graphiql/static/",
    "/graphiql/static/nothing.js",
    "/graphiql/static/LICENCES.txt",
    "/graphiql/static/../package.json",
    "/graphiql/x",
  ])("serves nothing at %s", async (path) => {
    expect((await ask(path)).status).toBe(404);
  });

  test("allows no other method than GET", async () => {
    const response = await ask("/graphiql", { method: "POST" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  test("is not served if it is disabled", async () => {
    const off = await serveGraphQL({ database: graphql.database, settings: { GRAPHQL_EXPLORER: "false" } });
    expect((await fetch(`${off.service.url}/graphiql`)).status).toBe(404);
    expect((await off.ask("{ __typename }")).data).toEqual({ __typename: "Query" });
    await off.stop();
  });
});
