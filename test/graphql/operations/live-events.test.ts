import { createClient, fetchExchange } from "@urql/core";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { until } from "../../until.ts";

const QUERY = "subscription { live { items(orderBy: [{id: ASC}]) { edges { node { id owner } } } } }";
const SCHEMA = `
  create table public.items (id int primary key, owner text);
  alter table public.items enable row level security;
  create policy own on public.items for select using (owner = auth.jwt() ->> 'sub');
  grant select on public.items to authenticated;
  insert into public.items values (1, '1'), (2, '2')`;

const graphql = useFixture(() => serveGraphQL({ before: SCHEMA }));

const HEADERS = { authorization: `Bearer ${tokenFor(1)}` };
const dataOf = (...ids: string[]) => ({ live: { items: { edges: ids.map((id) => ({ node: { id, owner: "1" } })) } } });

/** The text of a stream of events, as it arrives. */
class EventText {
  text = "";
  isOver = false;
  readonly status: number;
  readonly type: string | null;
  readonly #abort: AbortController;

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.type = response.headers.get("content-type");
    this.#abort = abort;
    void this.#read(response).catch(() => {});
  }

  static async open(query: string, headers: Readonly<Record<string, string>>, extensions = {}): Promise<EventText> {
    const abort = new AbortController();
    const response = await fetch(graphql.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...headers },
      body: JSON.stringify({ query, extensions }),
      signal: abort.signal,
    });
    return new EventText(response, abort);
  }

  get events(): string[] {
    return this.text.split("\n\n").filter((event) => event !== "" && event !== ":");
  }

  get lastId(): string {
    return /^id: (.*)$/m.exec(this.events.at(-1)!)![1]!;
  }

  results(): unknown[] {
    return this.events.flatMap((event) => {
      const [, data] = /^event: next\ndata: (.*)$/m.exec(event) ?? [];
      return data ? [JSON.parse(data)] : [];
    });
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) this.text += chunk;
    this.isOver = true;
  }
}

test("a live query is a stream of events", async () => {
  const stream = await EventText.open(QUERY, HEADERS);
  expect([stream.status, stream.type]).toEqual([200, "text/event-stream; charset=utf-8"]);
  await until(() => stream.results().length === 1);
  await graphql.sql("insert into public.items values (3, '1')");
  await until(() => stream.results().length === 2);
  expect(stream.results()).toEqual([{ data: dataOf("1") }, { data: dataOf("1", "3") }]);
  stream.close();
  await graphql.sql("delete from public.items where id = 3");
});

test("another connection continues with what the client does not have", async () => {
  const continued = async (id: string) => {
    await graphql.sql(`insert into public.items values (${id}, '1')`);
    const first = await EventText.open(QUERY, HEADERS);
    await until(() => first.results().length === 1);
    first.close();
    const second = await EventText.open(QUERY, { ...HEADERS, "last-event-id": first.lastId });
    await graphql.sql(`delete from public.items where id = ${id}`);
    await until(() => JSON.stringify(second.results().at(-1)) === JSON.stringify({ data: dataOf("1") }));
    second.close();
    return second.results().length === 1;
  };
  // Whenever roles change, as by tests beside this one, the whole result is sent once more.
  expect([await continued("5"), await continued("6"), await continued("7")]).toContain(true);
});

test("clients that ask for patches receive changes without the whole result", async () => {
  const stream = await EventText.open(QUERY, HEADERS, { live: { patches: true } });
  await until(() => stream.results().length === 1);
  await graphql.sql("insert into public.items values (4, '1')");
  await until(() => stream.results().length === 2);
  const patch = [{ op: "add", path: "/live/items/edges/1", value: { node: { id: "4", owner: "1" } } }];
  expect(stream.results()).toEqual([
    { data: dataOf("1"), extensions: { live: { position: expect.any(String) } } },
    { extensions: { live: { position: expect.any(String), patch } } },
  ]);
  stream.close();
  await graphql.sql("delete from public.items where id = 4");
});

test("a query is one result for clients that take events only", async () => {
  const stream = await EventText.open("{ item(id: 1) { owner } }", HEADERS);
  await until(() => stream.isOver);
  expect(stream.text).toBe('event: next\ndata: {"data":{"item":{"owner":"1"}}}\n\nevent: complete\ndata: \n\n');
});

test("subscriptions to events of rows are refused", async () => {
  const stream = await EventText.open("subscription { onArticleCreated { id } }", HEADERS);
  await until(() => stream.isOver);
  expect(stream.results()).toMatchObject([{ errors: [{ message: expect.stringContaining("WebSocket") }] }]);
});

test("a token that expires ends the stream", async () => {
  const exp = Math.floor(Date.now() / 1000) - 28;
  const stream = await EventText.open(QUERY, { authorization: `Bearer ${tokenFor(1, { exp })}` });
  await until(() => stream.isOver);
  expect(stream.results()).toMatchObject([
    { data: dataOf("1") },
    { errors: [{ extensions: { code: "AUTH_EXPIRED" } }] },
  ]);
  expect(stream.text).toMatch(/event: complete\ndata: \n\n$/);
});

test("urql receives live queries without a WebSocket", async () => {
  const client = createClient({
    url: graphql.url,
    preferGetMethod: false,
    fetchOptions: { headers: HEADERS },
    fetchSubscriptions: true,
    exchanges: [fetchExchange],
  });
  const heard: unknown[] = [];
  const { unsubscribe } = client.subscription(QUERY, {}).subscribe(({ data, error }) => heard.push(error ?? data));
  await until(() => heard.length === 1);
  await graphql.sql("insert into public.items values (5, '1'), (6, '2')");
  await until(() => heard.length === 2);
  expect(heard).toEqual([dataOf("1"), dataOf("1", "5")]);
  unsubscribe();
});
