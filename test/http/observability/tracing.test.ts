import { describe, expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { openTracing } from "../../../http/observability/tracing.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { type CollectedSpan, startCollector } from "./collector.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";
const SERVER = 2;
const INTERNAL = 1;
const CLIENT = 3;

const database = useDatabase({
  sql: `
      create table public.things (id int primary key, word text);
      insert into public.things values (1, 'xyzzy');
      grant select on public.things to anon;
      alter table public.things enable row level security;
      create policy select_all on public.things for select using (1 / id > 0);
      insert into public.things values (0, 'divides by zero')`,
});
const collector = useFixture(startCollector);

/** Returns the spans of a service of its own, which have all arrived when it has stopped. */
async function spansOf(ask: (url: string) => Promise<unknown>, settings: NodeJS.ProcessEnv = {}) {
  collector.spans.length = 0;
  const service = await serve(database, {
    REST_REQUIRE_APIKEY: "false",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...settings,
  });
  await ask(service.url);
  await service.stop();
  return [...collector.spans];
}

const childOf = (spans: readonly CollectedSpan[], parent: CollectedSpan) =>
  spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId);

describe("traces", () => {
  test("a request is a span in the client's trace with its SQL statements as children, without values", async () => {
    const spans = await spansOf(async (url) => {
      await fetch(`${url}/rest/v1/things?id=eq.1&word=eq.xyzzy`, {
        headers: { traceparent: `00-${TRACE}-${CALLER}-01`, "x-request-id": "request-17" },
      });
    });
    const request = spans.find(({ kind }) => kind === SERVER)!;
    expect(request).toMatchObject({ name: "GET /rest/v1/{table}", traceId: TRACE, parentSpanId: CALLER });
    expect(request.attributes).toMatchObject({
      "http.request.method": "GET",
      "http.route": "/rest/v1/{table}",
      "http.response.status_code": 200,
      "url.path": "/rest/v1/things",
      "url.scheme": "http",
      "request.id": "request-17",
    });
    const [statement, ...others] = childOf(spans, request);
    expect(others).toEqual([]);
    expect(statement).toMatchObject({ kind: CLIENT, traceId: TRACE });
    expect(statement!.attributes).toMatchObject({
      "db.system.name": "postgresql",
      "db.query.text": expect.stringContaining("things"),
      "db.response.returned_rows": 1,
      "postgresql.role": "anon",
    });
    expect(JSON.stringify(spans)).not.toContain("xyzzy");
  });

  test("a GraphQL operation is a span between request and statements, with its name and type", async () => {
    const query = "query Reading { things { edges { node { word } } } }";
    const ask = (url: string) =>
      fetch(`${url}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query }),
      });
    const spans = await spansOf(ask, { GRAPHQL_PRELOAD: "on" });
    const request = spans.find(({ kind }) => kind === SERVER)!;
    const [operation] = childOf(spans, request);
    expect(operation).toMatchObject({ name: "query", kind: INTERNAL });
    expect(operation!.attributes).toEqual({ "graphql.operation.type": "query", "graphql.operation.name": "Reading" });
    expect(childOf(spans, operation!).map(({ kind }) => kind)).toContain(CLIENT);
  });

  test("a failed statement's span has the SQLSTATE", async () => {
    const spans = await spansOf((url) => fetch(`${url}/rest/v1/things`));
    const statement = spans.find(({ kind }) => kind === CLIENT)!;
    expect(statement.attributes).toMatchObject({ "db.response.status_code": "22012", "error.type": "22012" });
    expect(statement.status.code).toBe(2);
  });

  test("have the service name, attributes and headers of the settings", async () => {
    await spansOf((url) => fetch(`${url}/rest/v1/things?id=eq.1`), {
      OTEL_SERVICE_NAME: "shop",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=a%20b",
      OTEL_EXPORTER_OTLP_HEADERS: "x-token=open%20sesame",
    });
    expect(collector.resources.at(-1)).toMatchObject({
      "service.name": "shop",
      "deployment.environment.name": "test",
      team: "a b",
    });
    expect(collector.tokens.at(-1)).toBe("open sesame");
  });

  test("are sampled by ratio, or by the client's decision", async () => {
    const traced = async (sampler: string, argument: string) => {
      collector.spans.length = 0;
      const settings = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument };
      const { config } = readConfig({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`, ...settings });
      const tracing = (await openTracing(config, makeLogger(config)))!;
      for (const traceparent of [`00-${TRACE}-${CALLER}-01`, `00-${TRACE}-${CALLER}-00`, undefined]) {
        tracing.startSpan("something", { kind: "server", remote: { traceparent } }).end();
      }
      await tracing.close();
      return collector.spans.length;
    };
    expect(await traced("always_on", "0")).toBe(3);
    expect(await traced("parentbased_traceidratio", "0")).toBe(1);
    expect(await traced("parentbased_always_on", "0")).toBe(2);
    expect(await traced("always_off", "1")).toBe(0);
  });

  test.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_SDK_DISABLED: "true" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_TRACES_EXPORTER: "none" },
  ])("are not created without an exporter: %j", async (settings) => {
    const { config } = readConfig(settings);
    expect(await openTracing(config, makeLogger(config))).toBeNull();
  });

  test("are dropped while the collector fails, which is logged once", async () => {
    const warnings: string[] = [];
    const log = { warn: (_fields: object, message: string) => void warnings.push(message), info: () => {} };
    const { config } = readConfig({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/nowhere` });
    const tracing = (await openTracing(config, log as never))!;
    tracing.startSpan("something", { kind: "server" }).end();
    await tracing.close();
    expect(warnings).toEqual(["traces cannot be sent and are dropped"]);
  });
});
