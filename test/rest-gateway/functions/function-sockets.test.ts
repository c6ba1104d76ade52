import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { connect as connectSocket } from "node:net";
import jwt from "jsonwebtoken";
import { afterEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

/** The example of Supabase's guide, which sends each message back. */
const echo = (onMessage: string) => `
  Deno.serve((req) => {
    const upgrade = req.headers.get("upgrade") || "";
    if (upgrade.toLowerCase() != "websocket") {
      return new Response("request isn't trying to upgrade to WebSocket.", { status: 400 });
    }
    const { socket, response } = Deno.upgradeWebSocket(req);
    socket.onopen = () => console.log("opened");
    socket.onmessage = (e) => { ${onMessage} };
    socket.onerror = (e) => console.log("error: " + e.message);
    socket.onclose = (e) => console.log(["closed", e.code, e.reason, e.wasClean].join(" "));
    return response;
  });`;

const PIECE = 2 ** 20;
const MANY_PIECES = 60;

const FILES: Readonly<Record<string, string>> = {
  "../config.toml": ["echo", "token", "relay", "events", "refuses", "early"]
    .map((name) => `[functions.${name}]\nverify_jwt = false\n`)
    .join(""),
  ".env": `TOKEN_SECRET=${SECRET}`,
  "echo/index.ts": echo("socket.send(e.data);"),
  "verified/index.ts": echo("socket.send(e.data);"),
  "token/index.ts": `
    import jwt from "npm:jsonwebtoken";
    Deno.serve((req) => {
      const token = new URL(req.url).searchParams.get("jwt");
      try {
        const { sub } = jwt.verify(token, Deno.env.get("TOKEN_SECRET"));
        const { socket, response } = Deno.upgradeWebSocket(req);
        socket.onopen = () => socket.send(sub);
        return response;
      } catch {
        return new Response("Invalid token provided", { status: 403, headers: { "X-Reason": "token" } });
      }
    });`,
  "relay/index.ts": `
    Deno.serve((req) => {
      const { socket, response } = Deno.upgradeWebSocket(req);
      const target = new WebSocket(Deno.env.get("SUPABASE_URL").replace("http", "ws") + "/functions/v1/echo");
      const isOpen = new Promise((done) => { target.onopen = done; });
      target.onmessage = (e) => socket.send("relayed " + e.data);
      target.onclose = () => socket.close(4002, "The other side has closed");
      socket.onmessage = async (e) => {
        await isOpen;
        if (e.data === "end") target.close();
        else target.send(e.data);
      };
      return response;
    });`,
  "events/index.ts": `
    Deno.serve((req) => {
      const { socket, response } = Deno.upgradeWebSocket(req, { protocol: "second" });
      const states = [socket.readyState];
      socket.binaryType = "arraybuffer";
      const say = (type) => socket.send(JSON.stringify([type, socket.protocol, socket.url.slice(0, 5), socket.readyState]));
      socket.addEventListener("open", (e) => say(e.type));
      socket.addEventListener("message", ({ data }) => {
        if (data instanceof ArrayBuffer) socket.send(new Uint8Array(data).subarray(1, 3));
        else socket.close(4001, "bye " + data + states);
      }, { once: false });
      return response;
    });`,
  "refuses/index.ts": `
    Deno.serve((req) => {
      if (new URL(req.url).searchParams.has("fail")) throw new Error("a mistake");
      if (new URL(req.url).searchParams.has("stream"))
        return new Response(new ReadableStream({ async pull(c) { c.enqueue(new TextEncoder().encode("piece ")); await new Promise((d) => setTimeout(d, 5)); c.close(); } }));
      if (new URL(req.url).searchParams.has("large")) {
        let left = 8;
        return new Response(new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(new Uint8Array(${PIECE})); else c.close(); } }));
      }
      Deno.upgradeWebSocket(req);
      return new Response(null, { status: 426, headers: { Upgrade: "websocket" } });
    });`,
  "early/index.ts": `
    Deno.serve((req) => {
      const { socket, response } = Deno.upgradeWebSocket(req);
      let problem;
      try { socket.send("too early"); } catch (error) { problem = error.name; }
      socket.close(4003, problem);
      return response;
    });`,
  "changed/index.ts": echo("socket.send('old');"),
  "throws/index.ts": echo("throw new Error('nobody catches this');"),
  "loop/index.ts": echo("for (;;);"),
  "keyless/index.ts": echo("socket.send(e.data);"),
  "quiet/index.ts": echo("socket.send(e.data);"),
  "large/index.ts": echo("socket.send(String(e.data.size));"),
  "flood/index.ts": echo(`
      let sent = 0;
      while (socket.readyState === WebSocket.OPEN && sent < 100) { socket.send(new Uint8Array(${PIECE})); sent++; }
      console.log("sent " + sent);`),
  "paced/index.ts": echo(`
      let left = ${MANY_PIECES};
      const send = () => {
        while (left > 0 && socket.bufferedAmount < ${4 * PIECE}) { socket.send(new Uint8Array(${PIECE})); left--; }
        if (left > 0) setTimeout(send, 1);
        else socket.close(1000, "done");
      };
      send();`),
};

const SETTINGS = { FUNCTIONS_CPU_SECONDS: "1" };
const TOKEN = `Bearer ${jwt.sign({ role: "authenticated", sub: "7" }, SECRET)}`;

const database = useDatabase();
const project = useFixture(() => makeFunctionsProject(FILES));
const service = useService({ database, settings: () => ({ FUNCTIONS_DIR: project.folder, ...SETTINGS }) });

const sockets: WebSocket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.terminate();
});

type ConnectOptions = {
  readonly protocols?: string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly url?: string;
};

const addressOf = (path: string, url = service.url) => `${url.replace("http", "ws")}/functions/v1/${path}`;

/** A socket of the package ws. */
function connect(path: string, { protocols = [], headers = { Authorization: TOKEN }, url }: ConnectOptions = {}) {
  const socket = new WebSocket(addressOf(path, url), protocols, { headers });
  sockets.push(socket);
  socket.on("error", () => {});
  const received: unknown[] = [];
  socket.on("message", (data, isBinary) => received.push(isBinary ? data : String(data)));
  const closed = new Promise<readonly unknown[]>((resolve) =>
    socket.once("close", (code, reason) => resolve([code, String(reason)])),
  );
  const opened = once(socket, "open");
  opened.catch(() => {});
  return { socket, received, opened, closed };
}

/** Returns the response to a request for a socket that is not opened. */
async function refusal(path: string, options: ConnectOptions = {}) {
  const { socket } = connect(path, options);
  const [, response] = (await once(socket, "unexpected-response")) as [ClientRequest, IncomingMessage];
  const body = Buffer.concat(await Array.fromAsync(response)).toString();
  return { status: response.statusCode, headers: response.headers, body };
}

const linesOf = async (name: string) =>
  (await service.operations.functionLines()).filter((line) => line.function === name);
const textsOf = async (name: string) => (await linesOf(name)).map(({ text }) => text);

describe("a function that upgrades a request", () => {
  test("sends and receives texts and bytes in order", async () => {
    const { socket, received, opened } = connect("echo", { headers: {} });
    await opened;
    const bytes = Buffer.from([0, 255, 1]);
    const none = Buffer.alloc(0);
    for (const message of ["first ä", bytes, "", none, none, Buffer.alloc(300_000, 7), "last"]) socket.send(message);
    await until(() => received.length === 7);
    expect(received).toEqual(["first ä", bytes, "", none, none, Buffer.alloc(300_000, 7), "last"]);
    const before = (await linesOf("echo")).length;
    socket.close(4000, "enough");
    await until(async () => (await textsOf("echo")).includes("closed 4000 enough true"));
    expect((await linesOf("echo")).length).toBeGreaterThan(before);
    // The lines of handlers belong to the request.
    expect((await linesOf("echo")).every(({ request }) => request !== null)).toBe(true);
  });

  test("serves the WebSocket of Node and of browsers", async () => {
    const socket = new globalThis.WebSocket(addressOf("echo"));
    await once(socket, "open");
    const answers: unknown[] = [];
    const closed = once(socket, "close");
    socket.onmessage = ({ data }) => answers.push(data);
    socket.send("hello");
    socket.send(new Uint8Array([1, 2]));
    await until(() => answers.length === 2);
    expect([answers[0], await (answers[1] as Blob).bytes()]).toEqual(["hello", new Uint8Array([1, 2])]);
    socket.close(3000, "bye");
    const [{ code, reason, wasClean }] = (await closed) as [CloseEvent];
    expect([code, reason, wasClean]).toEqual([3000, "bye", true]);
  });

  test("may verify a token of the query itself", async () => {
    const token = jwt.sign({ role: "authenticated", sub: "ada" }, SECRET);
    const { received } = connect(`token?jwt=${token}`, { headers: {} });
    await until(() => received.length === 1);
    expect(received).toEqual(["ada"]);
    const refused = await refusal("token?jwt=nonsense", { headers: {} });
    expect(refused).toMatchObject({ status: 403, body: "Invalid token provided", headers: { "x-reason": "token" } });
  });

  test("chooses a subprotocol, listens to events, and closes with a code", async () => {
    const { socket, received, opened, closed } = connect("events", { protocols: ["first", "second"] });
    await opened;
    expect(socket.protocol).toBe("second");
    socket.send(Buffer.from([1, 2, 3, 4]));
    socket.send("Ada");
    expect(await closed).toEqual([4001, "bye Ada0"]);
    expect(received).toEqual(['["open","second","ws://",1]', Buffer.from([2, 3])]);
    expect(await refusal("events", { protocols: ["first"] })).toMatchObject({ status: 500 });
  });

  test("may close the socket before it is open, and then sends nothing", async () => {
    const { received, closed } = connect("early");
    expect(await closed).toEqual([4003, "InvalidStateError"]);
    expect(received).toEqual([]);
  });

  test("relays to a socket that it opens itself", async () => {
    const { socket, received, opened, closed } = connect("relay");
    await opened;
    socket.send("one");
    socket.send("two");
    await until(() => received.length === 2);
    expect(received).toEqual(["relayed one", "relayed two"]);
    socket.send("end");
    expect(await closed).toEqual([4002, "The other side has closed"]);
  });
});

describe("a request for a socket that is not upgraded", () => {
  test("gets the response of the function", async () => {
    expect(await refusal("refuses")).toMatchObject({ status: 426, headers: { connection: "close" }, body: "" });
    expect(await refusal("refuses?stream")).toMatchObject({ status: 200, body: "piece " });
    expect((await refusal("refuses?large")).body.length).toBe(8 * PIECE);
    expect(await refusal("refuses?fail")).toMatchObject({ status: 500, body: "Internal Server Error" });
  });

  test("needs a token as other requests do", async () => {
    const refused = await refusal("verified", { headers: {} });
    expect([refused.status, JSON.parse(refused.body)]).toEqual([
      401,
      { code: 401, message: "Missing authorization header" },
    ]);
    expect(refused.headers["x-content-type-options"]).toBe("nosniff");
    expect((await refusal("verified", { headers: { Authorization: "Bearer x.y.z" } })).status).toBe(401);
    await connect("verified").opened;
  });

  test("of an unknown function is 404", async () => {
    const refused = await refusal("nothing");
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([404, "NOT_FOUND"]);
  });

  test("an ordinary request has no socket", async () => {
    const response = await fetch(`${service.url}/functions/v1/echo`, { headers: { "X-Upgrade": "websocket" } });
    expect([response.status, await response.text()]).toEqual([400, "request isn't trying to upgrade to WebSocket."]);
    const failed = await fetch(`${service.url}/functions/v1/early`);
    expect(failed.status).toBe(500);
    expect((await textsOf("early")).join()).toContain("The client asks for no WebSocket");
  });
});

describe("sockets are closed with the reason", () => {
  test("when the function has changed: 1012", async () => {
    const { socket, received, opened, closed } = connect("changed");
    await opened;
    socket.send("x");
    await until(() => received.length === 1);
    await project.write("changed/index.ts", echo("socket.send('new');"));
    expect(await closed).toEqual([1012, "The function was replaced: connect again"]);
    expect(received).toEqual(["old"]);
    // A file that is written in several steps is read several times, and each time replaces the thread.
    await until(async () => {
      const next = connect("changed");
      next.socket.on("open", () => next.socket.send("x"));
      await Promise.race([next.closed, once(next.socket, "message")]);
      return next.received.includes("new");
    });
  });

  test("when a handler throws: 1011", async () => {
    const { socket, opened, closed } = connect("throws");
    await opened;
    socket.send("x");
    expect(await closed).toEqual([1011, "Function exited due to an error (please check logs)"]);
    expect((await textsOf("throws")).join()).toContain("nobody catches this");
    await connect("throws").opened;
  });

  test("when a handler never ends: 1011, and other functions go on", async () => {
    const other = await serve(database, {
      ...{ FUNCTIONS_DIR: project.folder, ...SETTINGS },
      // The thread yields to everything else that the machine does.
      FUNCTIONS_TIMEOUT_SECONDS: "8",
    });
    const { url } = other;
    const { socket, opened, closed } = connect("loop", { url });
    await opened;
    socket.send("x");
    const quiet = connect("quiet", { url });
    await quiet.opened;
    quiet.socket.send("still here");
    await until(() => quiet.received.length === 1);
    expect(await closed).toEqual([
      1011,
      "Function failed due to not having enough compute resources (please check logs)",
    ]);
    await connect("loop", { url }).opened;
    await other.stop();
  });

  test("when the service stops: 1001; and other sites are refused if CORS_ORIGINS names some", async () => {
    const other = await serve(database, {
      FUNCTIONS_DIR: project.folder,
      CORS_ORIGINS: "https://app.example.org",
      ...SETTINGS,
    });
    const { url } = other;
    const refused = await refusal("echo", { url, headers: { Origin: "https://evil.example" } });
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([403, "PERMISSION_DENIED"]);
    const { opened, closed } = connect("echo", { url, headers: { Origin: "https://app.example.org" } });
    await opened;
    await other.stop();
    expect(await closed).toEqual([1001, "The service is shutting down: connect again"]);
  });
});

describe("attacks", () => {
  test("a message that is too large: 1009, and the function learns of it", async () => {
    const { socket, received, opened, closed } = connect("large");
    await opened;
    socket.send(Buffer.alloc(5 * 2 ** 20));
    await until(() => received.length === 1);
    expect(received).toEqual([String(5 * 2 ** 20)]);
    socket.send(Buffer.alloc(5 * 2 ** 20 + 1));
    expect((await closed)[0]).toBe(1009);
    await until(async () => (await textsOf("large")).some((text) => text.startsWith("closed")));
    expect((await textsOf("large")).slice(-2)).toEqual([
      "error: Max payload size exceeded",
      expect.stringMatching(/^closed /),
    ]);
  });

  test("a client that reads nothing: what waits for it is bounded", async () => {
    const { hostname, port } = new URL(service.url);
    const client = connectSocket(Number(port), hostname);
    client.write(
      `GET /functions/v1/flood HTTP/1.1\r\nHost: x\r\nAuthorization: ${TOKEN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    expect(String((await once(client, "data"))[0])).toMatch(/^HTTP\/1\.1 101 /);
    client.pause();
    // A masked message with one letter.
    client.write(Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78]));
    await until(async () => (await textsOf("flood")).includes("sent 17"));
    client.destroy();
    await until(async () => (await textsOf("flood")).some((text) => text.startsWith("closed 1006")));
    expect(await textsOf("flood")).toContain("error: More than 16 MiB wait for the client to read them");
  });

  test("a function that looks at bufferedAmount sends any amount", async () => {
    const { socket, opened, closed, received } = connect("paced");
    await opened;
    socket.send("x");
    expect(await closed).toEqual([1000, "done"]);
    expect(received.map((each) => (each as Buffer).length)).toEqual(Array(MANY_PIECES).fill(PIECE));
  });

  test("a request for a socket behind one that is not answered yet ends the connection only", async () => {
    const { hostname, port } = new URL(service.url);
    const client = connectSocket(Number(port), hostname).on("error", () => {});
    const upgrade =
      "GET /functions/v1/echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write(`GET /functions/v1/echo HTTP/1.1\r\nHost: x\r\n\r\n${upgrade}`);
    const received: Buffer[] = [];
    client.on("data", (data: Buffer) => received.push(data));
    await once(client, "close");
    expect(String(Buffer.concat(received))).not.toContain("HTTP/1.1 101 ");
    expect((await fetch(`${service.url}/functions/v1/echo`)).status).toBe(400);
  });

  test.each([
    ["GET", 400, "VALIDATION_ERROR"],
    ["POST", 405, "METHOD_NOT_ALLOWED"],
  ])("a %s request without a key of a socket is %i, and calls no function", async (method, status, code) => {
    const { hostname, port } = new URL(service.url);
    const client = connectSocket(Number(port), hostname);
    client.write(
      `${method} /functions/v1/keyless HTTP/1.1\r\nHost: x\r\nAuthorization: ${TOKEN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    const received: Buffer[] = [];
    client.on("data", (data: Buffer) => received.push(data));
    await once(client, "close");
    const response = String(Buffer.concat(received));
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(response).toContain(`"${code}"`);
    expect(await textsOf("keyless")).toEqual([]);
  });
});
