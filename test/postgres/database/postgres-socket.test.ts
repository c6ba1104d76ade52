import { once } from "node:events";
import { connect as connectTo, createServer, type Server, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../postgres/database/database.ts";
import { openPostgresSocket } from "../../../postgres/database/postgres-socket.ts";
import { useDatabase } from "../../database.ts";
import { CERTIFICATE, KEY } from "./certificate.ts";
import { anon, sql } from "./open.ts";

const database = useDatabase({ template: "empty" });

const options = () => ({ url: database.url, applicationName: "socket test", connectTimeout: 5_000 });

/** A simple query, which we never send otherwise. */
function simpleQuery(text: string): Buffer {
  const buffer = Buffer.alloc(6 + text.length);
  buffer.write("Q");
  buffer.writeInt32BE(5 + text.length, 1);
  buffer.write(text, 5);
  return buffer;
}

/** Speaks TLS to clients and hands the rest to the test cluster's unix socket. */
async function tlsInFrontOf(url: string): Promise<{ server: Server; url: string; sessions: () => number }> {
  const place = new URL(url.replace("@/", "@localhost/"));
  const path = `${place.searchParams.get("host")}/.s.PGSQL.${place.searchParams.get("port")}`;
  let sessions = 0;
  const server = createServer((plain) => {
    plain.on("error", () => {});
    plain.once("data", () => {
      plain.write("S");
      sessions++;
      const secure = new TLSSocket(plain, { isServer: true, key: KEY, cert: CERTIFICATE });
      const postgres = connectTo(path);
      for (const end of [secure, postgres])
        end.on("error", () => {}).on("close", () => [secure, postgres].map((other) => other.destroy()));
      secure.pipe(postgres).pipe(secure);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    server,
    url: `postgresql://${place.username}@127.0.0.1:${port}${place.pathname}?sslmode=no-verify`,
    sessions: () => sessions,
  };
}

describe("the internals of pg that we use", () => {
  test("exist in the pinned version", async () => {
    const client = new pg.Client({ connectionString: database.url }) as pg.Client & Record<string, unknown>;
    await client.connect();
    expect(client).toMatchObject({
      processID: expect.any(Number),
      secretKey: expect.any(Number),
      host: expect.any(String),
    });
    expect(client.getStartupConf).toBeTypeOf("function");
    expect(client.connection).toMatchObject({ cancel: expect.any(Function), requestSsl: expect.any(Function) });
    expect(client.connection.stream).toBeInstanceOf(Socket);
    expect(client.connection.stream.listenerCount("data")).toBe(1);
    await client.end();
  });
});

describe("a socket taken over from pg", () => {
  test("passes our messages to the server and the server's to us", async () => {
    const socket = await openPostgresSocket(options());
    const types: string[] = [];
    const done = new Promise<void>((resolve) => {
      socket.listen(
        (type) => {
          types.push(String.fromCharCode(type));
          if (type === 0x5a) resolve();
        },
        () => {},
      );
    });
    const query = simpleQuery("select 1");
    socket.write([query.subarray(0, 3), query.subarray(3)]);
    await done;
    expect(types).toEqual(["T", "D", "C", "Z"]);
    expect(socket.parameters.get("client_encoding")).toBe("UTF8");
    expect(socket.processId).toBeGreaterThan(0);
    await socket.end();
  });

  test("reports once that it is lost, with the reason, also if that was before a listener was added", async () => {
    const socket = await openPostgresSocket(options());
    const reasons: string[] = [];
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.listen(
      () => {},
      (reason) => reasons.push(reason.message),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(reasons).toEqual([expect.stringMatching(/terminated|ended/)]);
  });

  test("fails with the server's own message if the server refuses", async () => {
    const url = database.url.replace(database.name, "no_such_database");
    await expect(openPostgresSocket({ ...options(), url })).rejects.toMatchObject({ code: "3D000" });
    await expect(openPostgresSocket({ ...options(), url: "postgresql://x@127.0.0.1:1/x" })).rejects.toMatchObject({
      code: "ECONNREFUSED",
    });
  });

  test("works over TLS, cancelling included", async () => {
    const { server, url, sessions } = await tlsInFrontOf(database.url);
    const secure = openDatabase({ url, ownerUrl: database.ownerUrl, log: { info() {}, warn() {} } });
    const sizes = [10, 100_000, 3_000_000];
    const answers = await Promise.all(
      sizes.map((size) => secure.run(anon, sql("select repeat('ß', $1::int)", String(size)), { readOnly: true })),
    );
    expect(answers.map(({ rows }) => rows[0]![0]!.length)).toEqual(sizes);
    const count = sql("select n::text from generate_series(1, 100000) n");
    let rows = 0;
    for await (const chunk of secure.stream(anon, count, { separator: "\n" })) rows += chunk.rows;
    expect(rows).toBe(100_000);

    const stop = new AbortController();
    const running = secure.run(anon, sql("select pg_sleep(20)"), { signal: stop.signal });
    const outcome = expect(running).rejects.toThrow("stop");
    setTimeout(() => stop.abort(new Error("stop")), 100);
    await outcome;
    expect(sessions()).toBeGreaterThan(1);
    await secure.close();
    server.close();
  });
});
