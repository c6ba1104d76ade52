import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as client from "@electric-sql/client";
import * as previousClient from "electric-client-previous";
import { rolldown } from "rolldown";
import { describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../browser.ts";
import { useFixture } from "../../fixture.ts";
import { openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";

type Row = client.Row;
type StreamOptions = { readonly liveSse: boolean; readonly where: string; readonly awaitsChange: boolean };

const SCHEMA = `
  create table public.notes (id int primary key, text text);
  grant select on public.notes to anon, authenticated;
  insert into public.notes values (1, 'first')`;

const CLIENTS = { "1.5.28": client, "1.5.26": previousClient as unknown as typeof client };

let lastId = 1;

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { REST_REQUIRE_APIKEY: "false" }));

async function insertNote(): Promise<number> {
  lastId += 1;
  await fixture.owner.query("insert into public.notes values ($1, 'later')", [lastId]);
  return lastId;
}

const allIds = () => Array.from({ length: lastId }, (_, index) => index + 1);

/** Reads the rows by a stream of its own, and ends it at once or after one more change has arrived. */
async function readByNewStream({ Shape, ShapeStream }: typeof client, options: StreamOptions) {
  const { liveSse, where, awaitsChange } = options;
  const abort = new AbortController();
  const answered: string[] = [];
  const fetchClient: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    answered.push(new URL(String(input)).searchParams.get("live") ?? "false");
    return response;
  };
  const url = `${fixture.service.url}/v1/shape`;
  const params = { table: "notes", where };
  const stream = new ShapeStream<Row>({ url, params, liveSse, fetchClient, signal: abort.signal });
  const shape = new Shape<Row>(stream as ConstructorParameters<typeof Shape<Row>>[0]);
  const ids = (await shape.rows).map(({ id }) => id);
  const answeredBefore = [...answered];
  if (awaitsChange) {
    const id = await insertNote();
    await until(() => shape.currentRows.some((row) => row.id === id));
  }
  abort.abort();
  return { ids, answeredBefore };
}

describe.each(Object.entries(CLIENTS))(
  "streams of one shape after each other, by version %s of the client",
  (version, electric) => {
    test.each([
      ["long polls", 2],
      ["long polls", 5],
      ["long polls", 20],
      ["events", 2],
      ["events", 5],
      ["events", 20],
    ])("have all rows in their first response: %s, %i streams", async (form, count) => {
      const where = `id > 0 and text <> '${version}, ${form}, ${count}'`;
      for (let stream = 0; stream < count; stream++) {
        const expected = allIds();
        const options = { liveSse: form === "events", where, awaitsChange: stream % 3 === 2 };
        const { ids, answeredBefore } = await readByNewStream(electric, options);
        expect({ stream, ids, answeredBefore }).toEqual({ stream, ids: expected, answeredBefore: ["false"] });
      }
    });
  },
);

test("only responses to live requests have the header electric-cursor", async () => {
  const read = (query: string) => fetch(`${fixture.service.url}/v1/shape?table=notes&${query}`);
  const first = await read("offset=-1");
  const [handle, offset] = ["electric-handle", "electric-offset"].map((name) => first.headers.get(name));
  const rest = await read(`handle=${handle}&offset=${offset}`);
  const subset = await read("offset=-1&subset__limit=1");
  expect([first, rest, subset].map(({ status, headers }) => [status, headers.get("electric-cursor")])).toEqual([
    [200, null],
    [200, null],
    [200, null],
  ]);
  await insertNote();
  const poll = await read(`handle=${handle}&offset=${offset}&live=true`);
  const abort = new AbortController();
  const events = await fetch(
    `${fixture.service.url}/v1/shape?table=notes&handle=${handle}&offset=${offset}&live=true&live_sse=true`,
    { signal: abort.signal },
  );
  for (const { headers } of [poll, events]) expect(headers.get("electric-cursor")).toMatch(/^\d+$/);
  abort.abort();
});

describeInBrowser("a page that follows a shape", () => {
  test.each(["long polls", "events"])("has its rows at once after each reload: %s", async (form) => {
    const bundle = await rolldown({ input: "page", platform: "browser", plugins: [pageModule(form === "events")] });
    const { output } = await bundle.generate();
    const server = createServer(({ url }, response) => {
      const [type, body] = url === "/page.js" ? ["text/javascript", output[0].code] : ["text/html", PAGE];
      response.writeHead(200, { "Content-Type": type }).end(body);
    }).listen(0, "127.0.0.1");
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      const shownIds = async () => JSON.parse((await page.locator("output").innerText()) || "null");
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      for (let load = 0; load < 6; load++) {
        if (load > 0) await page.reload();
        await expect.poll(() => page.evaluate("globalThis.firstIds")).toBeTruthy();
        const firstIds = await page.evaluate("globalThis.firstIds");
        const liveResponses = await page.evaluate("globalThis.liveResponses");
        expect({ load, firstIds, liveResponses }).toEqual({ load, firstIds: allIds(), liveResponses: 0 });
        if (load % 3 !== 2) continue;
        await insertNote();
        await expect.poll(shownIds).toEqual(allIds());
      }
    } finally {
      await browser.close();
      server.close();
    }
  });
});

const PAGE = `<!doctype html><title>Notes</title><output></output><script type="module" src="/page.js"></script>`;

/** The responses to a signed-in caller come from the service, never from the browser's cache. */
function pageModule(liveSse: boolean) {
  const text = `
    import { Shape, ShapeStream } from "@electric-sql/client";
    let liveResponses = 0;
    const stream = new ShapeStream({
      url: "${fixture.service.url}/v1/shape",
      params: { table: "notes" },
      headers: { Authorization: "Bearer ${token({ sub: "ann", role: "authenticated" })}" },
      liveSse: ${liveSse},
      fetchClient: async (input, init) => {
        const response = await fetch(input, init);
        if (new URL(input).searchParams.get("live") === "true") liveResponses += 1;
        return response;
      },
    });
    new Shape(stream).subscribe(({ rows }) => {
      const ids = rows.map(({ id }) => id).sort((one, other) => one - other);
      globalThis.liveResponses ??= liveResponses;
      globalThis.firstIds ??= ids;
      document.querySelector("output").textContent = JSON.stringify(ids);
    });`;
  return {
    name: "page",
    resolveId: (id: string) => (id === "page" ? { id: `${import.meta.dirname}/page.js` } : null),
    load: (id: string) => (id.endsWith("/page.js") ? text : null),
  };
}
