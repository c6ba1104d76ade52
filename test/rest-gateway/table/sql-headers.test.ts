import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { useService } from "../../serve.ts";

const FUNCTIONS = `
  create function public.say(headers text) returns text language sql stable set search_path = '' as $$
    select set_config('response.headers', headers, true) $$;
  create function public.refuse(headers text, status integer default 418) returns text language plpgsql stable set search_path = '' as $$
  begin
    raise sqlstate 'PGRST' using message = '{"code":"WRONG","message":"wrong"}',
      detail = format('{"status":%s,"headers":%s}', status, headers);
  end $$;
  grant execute on function public.say, public.refuse to anon;`;

const service = useService({
  template: "empty",
  sql: FUNCTIONS,
  settings: {
    REST_REQUIRE_APIKEY: "false",
    CORS_ORIGINS: "https://shop.example",
    SERVER_TIMING: "true",
  },
});

/** Returns the headers in their order on the wire. */
async function ask(
  name: "say" | "refuse",
  headers: unknown,
  status?: number,
): Promise<[name: string, value: string][]> {
  const url = new URL(`/rest/v1/rpc/${name}`, service.url);
  url.searchParams.set("headers", JSON.stringify(headers));
  if (status !== undefined) url.searchParams.set("status", String(status));
  const sent = request(url, { headers: { Origin: "https://shop.example" } }).end();
  const [answer]: [IncomingMessage] = (await once(sent, "response")) as [IncomingMessage];
  const expected = status ?? (name === "say" ? 200 : 418);
  expect([answer.statusCode, await text(answer)]).toEqual([expected, expect.any(String)]);
  const { rawHeaders: raw } = answer;
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index]!, raw[2 * index + 1]!]);
}

const BY_CONNECTION = /^(connection|keep-alive|date|content-length|transfer-encoding)$/i;
const named = (wire: [string, string][], name: string) => wire.filter(([each]) => each.toLowerCase() === name);

test.each<["say" | "refuse", (names: string[]) => object, vary: string]>([
  [
    "say",
    (names) => names.map((name) => ({ [name]: "ours" })),
    "ours, Origin, Authorization, apikey, X-API-Key, Cookie",
  ],
  // Errors may be pages.
  [
    "refuse",
    (names) => Object.fromEntries(names.map((name) => [name, "ours"])),
    "ours, Accept, Origin, Authorization, apikey, X-API-Key, Cookie",
  ],
])("a header that %s sets in other case is sent once, and replaces the default header", async (name, toSet, vary) => {
  const usual = await ask(name, toSet([]));
  const names = usual.map(([each]) => each.toLowerCase()).filter((each) => !BY_CONNECTION.test(each));
  expect(names).toEqual(expect.arrayContaining(["vary", "x-request-id", "access-control-allow-origin"]));
  const wire = await ask(name, toSet(names));
  for (const each of names) {
    expect(named(wire, each)).toEqual([[expect.any(String), each === "vary" ? vary : "ours"]]);
  }
});

test.each([
  [503, "retry-after", "60"],
  [405, "allow", "BREW"],
])("an error with %d has our %s, unless SQL sets it in any case", async (status, header, value) => {
  expect(named(await ask("refuse", {}, status), header)).toHaveLength(1);
  expect(named(await ask("refuse", { [header]: value }, status), header)).toEqual([[expect.any(String), value]]);
});

test("a header may have the name of a property of Object.prototype", async () => {
  const wire = await ask("say", [{ constructor: "x" }, { constructor: "y" }]);
  expect(named(wire, "constructor")).toEqual([
    ["constructor", "x"],
    ["constructor", "y"],
  ]);
});
