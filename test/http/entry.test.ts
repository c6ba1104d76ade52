import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Writable } from "node:stream";
import { pino } from "pino";
import request from "supertest";
import { describe, expect, test, vi } from "vitest";
import { readConfig } from "../../config/config.ts";
import { makeEntryListener, makeExpressApp } from "../../http/entry.ts";
import { HttpError } from "../../http/http-error.ts";
import { toNodeHandler, toUpgradeListener } from "../../http/node-handler.ts";
import type { GatewayRoutes } from "../../http/request.ts";
import { jsonResponse } from "../../http/response.ts";
import { makeRouter } from "../../http/router.ts";

const routes: GatewayRoutes = {
  "/things": {
    GET: () => jsonResponse(200, { thing: 1 }),
    POST: async (sent) =>
      jsonResponse(201, { bytes: (await sent.readBody({ bytes: 10_000, isAnonymous: false })).length }),
  },
  "/conflict": {
    GET: () => {
      throw new HttpError(409, "RESOURCE_CONFLICT", "It is taken.", { headers: { "Retry-After": "9" } });
    },
  },
  "/broken": {
    GET: () => {
      throw new TypeError("secret plan is not a function");
    },
  },
  "/unsendable": { GET: () => jsonResponse(200, {}, { "Content-Encoding": "br", "X-Note": "two\nlines" }) },
  "/studio/app@edition/main.js": { GET: () => jsonResponse(200, {}) },
  "/rest/v1/socket": {
    GET: ({ handOver }) => {
      handOver!((_request, socket) =>
        socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
      );
      return { status: 101, headers: {}, body: null };
    },
  },
  "/rest/v1/never": { GET: () => new Promise(() => {}) },
  "/rest/v1/nothing": { GET: () => ({ status: 200, headers: {}, body: null }) },
  "/rest/v1/varied": { GET: () => jsonResponse(200, {}, { Vary: "Accept" }) },
  "/rest/v1/unsendable": { GET: () => jsonResponse(200, {}, { "Content-Encoding": "br", "X-Note": "two\nlines" }) },
  "/rest/v1/busy": {
    GET: () => {
      throw new HttpError(503, "BUSY", "Not now.", { headers: { "Retry-After": "60" } });
    },
  },
  "/rest/v1/broken": {
    GET: () => {
      throw new HttpError(404, "PGRST205", "No such table.", { hint: "Look again." });
    },
  },
};

function start(environment: NodeJS.ProcessEnv = {}) {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const { config } = readConfig(environment);
  const log = pino({ level: "debug" }, sink);
  const answer = toNodeHandler(makeRouter({ routes, errorBody: config.errorBody, log }), config, log);
  const entry = makeEntryListener({
    config,
    log,
    beforeExpress: { takes: (path) => path.startsWith("/rest/v1"), answer },
    app: makeExpressApp({ config, answer }),
  });
  return { app: createServer(entry).on("upgrade", toUpgradeListener(entry)), lines };
}

describe("the log line of a request", () => {
  test("has the status 101 if the connection was handed over, and otherwise that of the response", async () => {
    const { app, lines } = start();
    await once(app.listen(0, "127.0.0.1"), "listening");
    const { port } = app.address() as AddressInfo;
    const logged = () => lines.filter(({ msg }) => msg === "request");
    for (const path of ["/rest/v1/socket", "/rest/v1/broken"]) {
      const sent = get({ port, path, headers: { Connection: "Upgrade", Upgrade: "websocket" } });
      sent.on("upgrade", (_response, socket: Socket) => socket.destroy());
      sent.on("response", (response: IncomingMessage) => response.resume());
      await once(sent, "close");
      await expect.poll(() => logged().at(-1)?.path).toBe(path);
    }
    app.close();
    expect(logged().map(({ status, aborted }) => [status, aborted])).toEqual([
      [101, undefined],
      [404, undefined],
    ]);
  });

  test("has the level debug for a file of Studio that was sent, and info for others", async () => {
    const { app, lines } = start();
    for (const path of ["/studio/app@edition/main.js", "/studio/app@edition/missing.js", "/things"])
      await request(app).get(path);
    const levels = lines.filter(({ msg }) => msg === "request").map(({ path, level }) => ({ path, level }));
    expect(levels).toEqual([
      { path: "/studio/app@edition/main.js", level: 20 },
      { path: "/studio/app@edition/missing.js", level: 30 },
      { path: "/things", level: 30 },
    ]);
  });
});

describe("routing", () => {
  test("a known path and method get a response", async () => {
    const answer = await request(start().app).get("/things").expect(200);
    expect(answer.body).toEqual({ thing: 1 });
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
  });

  test("HEAD returns the headers of GET with its length, without the body", async () => {
    const answer = await request(start().app).head("/things").expect(200);
    expect(answer.headers["content-length"]).toBe(String('{"thing":1}'.length));
    expect(answer.text).toBeUndefined();
  });

  test("a HEAD response of unknown length has no Content-Length, and a GET response always has one", async () => {
    const { app } = start();
    expect((await request(app).head("/rest/v1/nothing").expect(200)).headers).not.toHaveProperty("content-length");
    expect((await request(app).get("/rest/v1/nothing").expect(200)).headers["content-length"]).toBe("0");
  });

  test.each(["/nothing", "/things/", "/Things", "/things/..", "/%74hings", "//things"])(
    "%s has no route: 404",
    async (path) => {
      const answer = await request(start().app).get(path).expect(404);
      expect(answer.body.error).toMatchObject({ code: "RESOURCE_NOT_FOUND", details: [] });
    },
  );

  test("another method is 405 with Allow", async () => {
    const answer = await request(start().app).delete("/things").expect(405);
    expect(answer.headers.allow).toBe("GET, HEAD, OPTIONS, POST");
    expect(answer.body.error.code).toBe("METHOD_NOT_ALLOWED");
  });

  test("OPTIONS returns the allowed methods", async () => {
    const answer = await request(start().app).options("/conflict").expect(204);
    expect(answer.headers.allow).toBe("GET, HEAD, OPTIONS");
  });
});

describe("errors", () => {
  test("an HttpError becomes the envelope, with its headers and the request's id", async () => {
    const answer = await request(start().app).get("/conflict").set("X-Request-Id", "abc-1").expect(409);
    expect(answer.body.error).toMatchObject({ code: "RESOURCE_CONFLICT", message: "It is taken.", requestId: "abc-1" });
    expect(Date.parse(answer.body.error.timestamp)).not.toBeNaN();
    expect(answer.headers["retry-after"]).toBe("9");
  });

  test("a retryable error has Retry-After once", async () => {
    const answer = await request(start().app).get("/rest/v1/busy").expect(503);
    expect(answer.headers["retry-after"]).toBe("60");
  });

  test("a setting selects the format of the body", async () => {
    const answer = await request(start({ ERROR_BODY: "detail" }).app)
      .get("/conflict")
      .expect(409);
    expect(answer.body).toEqual({ detail: { code: "RESOURCE_CONFLICT", message: "It is taken." } });
  });

  test("under /rest/v1 errors have Postgres's four fields, under /graphql they are a list", async () => {
    const { app } = start();
    const table = await request(app).get("/rest/v1/broken").expect(404);
    expect(table.body).toEqual({ code: "PGRST205", message: "No such table.", details: null, hint: "Look again." });
    const graphql = await request(app).get("/graphql/nothing").expect(404);
    expect(graphql.body.errors[0].extensions.code).toBe("RESOURCE_NOT_FOUND");
  });

  test("an internal error has no details in the response and all in the log", async () => {
    const { app, lines } = start();
    const answer = await request(app).get("/broken").set("X-Request-Id", "abc-2").expect(500);
    expect(answer.text).not.toContain("secret plan");
    const line = lines.find(({ msg }) => msg === "Internal error")!;
    expect(line.request).toBe("abc-2");
    expect(JSON.stringify(line)).toContain("secret plan");
  });
});

describe("a response that cannot be sent", () => {
  test.each(["/unsendable", "/rest/v1/unsendable"])("%s is 500, and the log has the reason", async (path) => {
    const { app, lines } = start();
    const answer = await request(app).get(path).set("X-Request-Id", "abc-4").expect(500);
    expect(answer.headers).toMatchObject({ "x-request-id": "abc-4", "x-content-type-options": "nosniff" });
    expect(answer.headers["content-encoding"]).toBeUndefined();
    const line = lines.find(({ msg }) => msg === "an answer could not be sent")!;
    expect(line.request).toBe("abc-4");
    expect(JSON.stringify(line)).toContain("X-Note");
  });
});

describe("a request with an absolute URL, as proxies send it", () => {
  test.each([
    ["http://example.org/things?a=1", 200],
    ["HTTP://example.org/rest/v1/broken", 404],
    ["http://example.org", 404],
    ["http://example.org?a=1", 404],
    ["*", 404],
  ])("%s is answered with %d", async (target, status) => {
    const server = start().app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const sent = get({ host: "127.0.0.1", port, path: target, agent: false });
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(status);
    server.close();
  });
});

describe("bodies", () => {
  test("are read up to the limit and refused above it", async () => {
    const { app } = start({ MAX_BODY_BYTES: "2000" });
    await request(app).post("/things").send("x".repeat(2000)).expect(201, { bytes: 2000 });
    const answer = await request(app).post("/things").send("x".repeat(2001)).expect(413);
    expect(answer.body.error.code).toBe("PAYLOAD_TOO_LARGE");
  });

  test("a body without Content-Length is counted as it arrives", async () => {
    const { app } = start({ MAX_BODY_BYTES: "2000" });
    const chunked = request(app).post("/things").set("Transfer-Encoding", "chunked");
    for (let chunk = 0; chunk < 5; chunk++) chunked.write("x".repeat(1000));
    const answer = await chunked;
    expect(answer.status).toBe(413);
  });

  test("an unsupported Content-Encoding is 415, so that no small body expands to a large one", async () => {
    await request(start().app).post("/things").set("Content-Encoding", "gzip").send("x").expect(415);
  });
});

describe("request ids", () => {
  test("are generated if the request has none, and echoed if it has one", async () => {
    const { app } = start();
    const first = await request(app).get("/things");
    const second = await request(app).get("/things");
    expect(first.headers["x-request-id"]).toMatch(/^[\da-f-]{36}$/);
    expect(second.headers["x-request-id"]).not.toBe(first.headers["x-request-id"]);
    const given = await request(app).get("/things").set("X-Request-Id", "trace:1/2=3");
    expect(given.headers["x-request-id"]).toBe("trace:1/2=3");
  });

  test.each(["a b", "<script>", "x".repeat(129), '"', "é"])("%.20j is invalid, so an id is generated", async (id) => {
    const answer = await request(start().app).get("/things").set("X-Request-Id", Buffer.from(id).toString("latin1"));
    expect(answer.headers["x-request-id"]).toMatch(/^[\da-f-]{36}$/);
  });

  test("are in the log line of the request, which does not contain the query", async () => {
    const { app, lines } = start();
    await request(app)
      .get("/things?api_key=top-secret")
      .set("X-Request-Id", "abc-3")
      .set("Authorization", "Bearer top-secret");
    expect(lines).toContainEqual(
      expect.objectContaining({ request: "abc-3", method: "GET", path: "/things", status: 200 }),
    );
    expect(JSON.stringify(lines)).not.toContain("top-secret");
  });

  test("of a client that disconnected before the response are logged with 499", async () => {
    const { app, lines } = start();
    await once(app.listen(0, "127.0.0.1"), "listening");
    const { port } = app.address() as AddressInfo;
    const sent = get({ port, host: "127.0.0.1", path: "/rest/v1/never", agent: false }).on("error", () => {});
    await once(app, "request");
    sent.destroy();
    await vi.waitFor(() => expect(lines).toMatchObject([{ path: "/rest/v1/never", status: 499, aborted: true }]));
    app.close();
  });
});

describe("headers for browsers", () => {
  test("responses cannot be sniffed, framed or run, and do not name the server", async () => {
    const { headers } = await request(start().app).get("/things");
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none';frame-ancestors 'none'",
      "referrer-policy": "no-referrer",
    });
    expect(headers["x-powered-by"]).toBeUndefined();
  });

  test.each<[way: string, environment: NodeJS.ProcessEnv, isAsked: boolean]>([
    ["over plain HTTP", {}, false],
    ["at a public address of plain HTTP", { PUBLIC_URL: "http://app.example" }, false],
    ["at a public address of HTTPS", { PUBLIC_URL: "https://app.example" }, true],
    ["behind a proxy", { TRUST_PROXY: "1" }, true],
    ["with a certificate", { HTTPS_CERT_FILE: "cert.pem", HTTPS_KEY_FILE: "key.pem" }, true],
  ])("%s browsers get Strict-Transport-Security only over HTTPS", async (_way, environment, isAsked) => {
    const { headers } = await request(start(environment).app).get("/things");
    expect("strict-transport-security" in headers).toBe(isAsked);
  });

  test("any origin may call, without cookies", async () => {
    const { headers } = await request(start().app).get("/things").set("Origin", "https://app.example");
    expect(headers["access-control-allow-origin"]).toBe("*");
    expect(headers["access-control-allow-credentials"]).toBeUndefined();
    expect(headers["access-control-expose-headers"]).toContain("Content-Range");
  });

  test("named origins may call with cookies, others may not", async () => {
    const { app } = start({ CORS_ORIGINS: "https://app.example" });
    const friend = await request(app).get("/things").set("Origin", "https://app.example");
    expect(friend.headers).toMatchObject({
      "access-control-allow-origin": "https://app.example",
      "access-control-allow-credentials": "true",
      vary: "Origin, Authorization, apikey, X-API-Key, Cookie",
    });
    const anonymous = await request(app).get("/things").set("Origin", "https://evil.example");
    expect(anonymous.headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("Vary keeps the other fields beside Origin", async () => {
    const { app } = start({ CORS_ORIGINS: "https://app.example" });
    expect((await request(app).get("/rest/v1/varied")).headers.vary).toBe(
      "Accept, Origin, Authorization, apikey, X-API-Key, Cookie",
    );
  });

  test("a preflight is answered for any path, with the requested headers", async () => {
    const answer = await request(start().app)
      .options("/rest/v1/anything")
      .set("Origin", "https://app.example")
      .set("Access-Control-Request-Method", "PATCH")
      .set("Access-Control-Request-Headers", "apikey,prefer");
    expect(answer.status).toBe(200);
    expect(answer.text).toBe("");
    expect(answer.headers["access-control-allow-methods"]).toBe("GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD");
    expect(answer.headers["access-control-allow-headers"]).toBe(
      "Authorization, apikey, prefer, Accept, Accept-Language, Content-Language",
    );
  });
});

describe("Server-Timing", () => {
  test("names the stages when the setting is on", async () => {
    const on = await request(start({ SERVER_TIMING: "true" }).app).get("/things");
    expect(on.headers["server-timing"]).toMatch(/^route;dur=\d+\.\d$/);
    const off = await request(start().app).get("/things");
    expect(off.headers["server-timing"]).toBeUndefined();
  });
});
