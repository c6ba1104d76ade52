import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Delivery, Webhook } from "../../../jobs/webhooks/delivery.ts";
import { makeWebhookSender, type WebhookSender } from "../../../jobs/webhooks/send-delivery.ts";
import type { AllowedNetwork } from "../../../runtime/safe-fetch.ts";
import { until } from "../../until.ts";
import { type Receiver, startReceiver, verify } from "./receiver.ts";

const makeSecret = () => `whsec_${randomBytes(32).toString("base64")}`;
const SECRET = makeSecret();
const DELIVERY: Delivery = {
  id: "6f1f9f0e-1c5d-4a39-8d52-2d5b3f6d6a10",
  body: '{"record":{"name":"Zoë"}}',
};

describe("a sender of webhooks", () => {
  let receiver: Receiver;
  let sender: WebhookSender;
  const signal = new AbortController().signal;

  beforeEach(async () => {
    receiver = await startReceiver();
    sender = makeWebhookSender({ network: "loopback" });
  });

  afterEach(async () => {
    vi.useRealTimers();
    await sender.close();
    await receiver.close();
  });

  const toWebhook = (more: Partial<Webhook> = {}): Webhook => ({
    id: "1",
    name: "orders",
    url: receiver.url,
    secret: SECRET,
    timeoutMs: 10_000,
    maxAttempts: 10,
    ...more,
  });
  const send = (more: Partial<Webhook> = {}, by = sender) => by.send(DELIVERY, toWebhook(more), signal);

  test("posts the body as it is, with a signature that the library of the specification verifies", async () => {
    expect(await send()).toEqual({ kind: "delivered" });
    const [request] = receiver.requests;
    expect(request!.body).toBe(DELIVERY.body);
    expect(request!.headers).toMatchObject({ "content-type": "application/json", "webhook-id": DELIVERY.id });
    expect(verify(request!, SECRET)).toEqual({ record: { name: "Zoë" } });
    expect(() => verify(request!, makeSecret())).toThrow("signature");
    expect(() => verify({ ...request!, body: "{}" }, SECRET)).toThrow("signature");
  });

  test("repeats a delivery with the same id and a new timestamp", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    await send();
    vi.setSystemTime(Date.now() + 3_600_000);
    await send();
    const [first, second] = receiver.requests.map(({ headers }) => headers);
    expect(second!["webhook-id"]).toBe(first!["webhook-id"]);
    expect(Number(second!["webhook-timestamp"]) - Number(first!["webhook-timestamp"])).toBe(3600);
    // The library refuses timestamps of an hour ago.
    expect(verify(receiver.requests[1]!, SECRET)).toBeTruthy();
    expect(() => verify(receiver.requests[0]!, SECRET)).toThrow("old");
  });

  test("signs with both secrets while a secret is rotated", async () => {
    const next = makeSecret();
    await send({ secret: `${SECRET} ${next}` });
    const [request] = receiver.requests;
    expect(verify(request!, SECRET)).toBeTruthy();
    expect(verify(request!, next)).toBeTruthy();
    expect(() => verify(request!, makeSecret())).toThrow("signature");
  });

  test.each([
    [200, "delivered"],
    [204, "delivered"],
    [299, "delivered"],
    [307, "retry"],
    [400, "retry"],
    [404, "retry"],
    [429, "retry"],
    [500, "retry"],
    [503, "retry"],
    [410, "gone"],
  ])("a response with %i means: %s", async (status, kind) => {
    receiver.respond = (response) => void response.writeHead(status, { Location: receiver.url }).end();
    const outcome = await send();
    expect(outcome.kind).toBe(kind);
    if (outcome.kind !== "delivered") expect(outcome).toMatchObject({ reason: expect.stringContaining(`${status}`) });
    expect(receiver.requests).toHaveLength(1);
  });

  test.each([
    ["120", 120_000],
    ["999999999", 24 * 3_600_000],
    ["tomorrow", null],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("Retry-After: %s delays the next attempt by %s ms", async (value, afterMs) => {
    receiver.respond = (response) => void response.writeHead(503, { "Retry-After": value }).end();
    expect(await send()).toMatchObject({ kind: "retry", afterMs });
  });

  test("Retry-After with a date delays the next attempt until then", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2030-01-01T00:00:00Z") });
    receiver.respond = (response) =>
      void response.writeHead(429, { "Retry-After": "Tue, 01 Jan 2030 00:01:00 GMT" }).end();
    expect(await send()).toMatchObject({ kind: "retry", afterMs: 60_000 });
  });

  test("a receiver that does not respond in time has failed", async () => {
    receiver.respond = () => {};
    expect(await send({ timeoutMs: 50 })).toEqual({ kind: "retry", afterMs: null, reason: "No response within 50 ms" });
  });

  test("a receiver that closes the connection before it responds has failed", async () => {
    receiver.respond = (response) => void response.socket!.destroy();
    expect(await send()).toMatchObject({ kind: "retry", reason: "other side closed" });
  });

  test("a receiver that is not there has failed", async () => {
    await receiver.close();
    expect(await send()).toMatchObject({ kind: "retry", reason: expect.stringContaining("ECONNREFUSED") });
    await receiver.reopen();
    expect(await send()).toEqual({ kind: "delivered" });
  });

  test.each<[string, Receiver["respond"]]>([
    ["ends in the middle", (response) => void response.write("x", () => response.socket!.destroy())],
    ["does not end", (response) => void response.write("x")],
    ["is large", (response) => void response.end("x".repeat(10_000_000))],
  ])("a response of 200 whose body %s is a success", async (_what, respond) => {
    receiver.respond = (response, request) => {
      response.writeHead(200, { "Transfer-Encoding": "chunked" });
      respond(response, request);
    };
    expect(await send({ timeoutMs: 1000 })).toEqual({ kind: "delivered" });
  });

  test("an aborted attempt rejects, because its outcome is unknown", async () => {
    receiver.respond = () => {};
    const controller = new AbortController();
    const sent = sender.send(DELIVERY, toWebhook(), controller.signal);
    const failed = expect(sent).rejects.toThrow("stopping");
    await until(() => receiver.requests.length === 1);
    controller.abort(new Error("stopping"));
    await failed;
    await expect(sender.send(DELIVERY, toWebhook(), controller.signal)).rejects.toThrow("stopping");
    expect(receiver.requests).toHaveLength(1);
  });

  test.each<[AllowedNetwork, string]>([
    ["public", "http://receiver.example/"],
    ["public", "https://127.0.0.1/"],
    ["loopback", "https://10.0.0.1/"],
    ["private", "http://169.254.169.254/latest/meta-data"],
    ["private", "ftp://receiver.example/"],
    ["private", "not a url"],
  ])("on a %s network refuses %s", async (network, url) => {
    const other = makeWebhookSender({ network });
    expect((await send({ url }, other)).kind).toBe("refused");
    await other.close();
  });

  test("a host that has a private address at the moment is tried again", async () => {
    const other = makeWebhookSender({ network: "public" });
    expect(await send({ url: "https://localhost/" }, other)).toMatchObject({
      kind: "retry",
      reason: expect.stringContaining("private address (see WEBHOOK_NETWORK)"),
    });
    await other.close();
  });

  test("after five failures in a row nothing is sent to the origin, then one probe, whose success ends that", async () => {
    receiver.respond = (response) => void response.writeHead(500).end();
    for (let failures = 0; failures < 5; failures++) expect((await send()).kind).toBe("retry");
    const postponed = await send({ url: `${receiver.url}/other` });
    expect(postponed).toMatchObject({ kind: "postponed", reason: expect.stringContaining("failing") });
    expect(receiver.requests).toHaveLength(5);

    let release = () => {};
    receiver.respond = (response) => {
      release = () => void response.end();
    };
    const probe = untilSent();
    await until(() => receiver.requests.length === 6);
    // While the probe is open, others wait.
    expect((await send()).kind).toBe("postponed");
    release();
    expect(await probe).toBe("delivered");
    receiver.respond = (response) => void response.end();
    expect((await send()).kind).toBe("delivered");
  });

  test("a failed probe doubles the pause", async () => {
    receiver.respond = (response) => void response.writeHead(500).end();
    for (let failures = 0; failures < 5; failures++) await send();
    const first = await send();
    expect(await untilSent()).toBe("retry");
    const second = await send();
    const pauses = [first, second].map((outcome) => (outcome.kind === "postponed" ? outcome.afterMs : 0));
    expect(pauses[0]).toBeGreaterThan(0);
    expect(pauses[0]).toBeLessThanOrEqual(1000);
    expect(pauses[1]).toBeGreaterThan(1000);
    expect(pauses[1]).toBeLessThanOrEqual(2000);
  });

  /** The outcome of the first attempt that is not postponed. */
  async function untilSent(): Promise<string> {
    let kind = "postponed";
    await until(async () => {
      kind = (await send()).kind;
      return kind !== "postponed";
    });
    return kind;
  }

  test("requests that a receiver rejects do not stop the others", async () => {
    receiver.respond = (response) => void response.writeHead(422).end();
    for (let failures = 0; failures < 8; failures++) expect((await send()).kind).toBe("retry");
    receiver.respond = (response) => void response.end();
    expect((await send()).kind).toBe("delivered");
  });
});
