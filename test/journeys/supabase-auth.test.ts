import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { AuthChangeEvent } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { Wire } from "../graphql/server/socket/wire.ts";
import { openRealtimeFixture, SCHEMA, subscribed } from "../realtime/service.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "../rest-gateway/sign-in/auth-v1/auth-client.ts";
import { until } from "../until.ts";

const SETTINGS = { AUTH_AUTOCONFIRM: "true" };

/** A storage like the one in which auth-js keeps sessions in Node. */
function makeStorage() {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
}

/** A client that keeps its session, and the events that it has reported. */
function makeStoringClient(url: string) {
  const storage = makeStorage();
  const client = makeClient(url, { persistSession: true, storageKey: "session", storage });
  const events: AuthChangeEvent[] = [];
  client.auth.onAuthStateChange((event) => void events.push(event));
  return { client, events, storage };
}

const PAGE = '<!doctype html><title>Application</title><script src="/supabase.js"></script>';

const subjectOf = (accessToken: string) => String(jwt.decode(accessToken)!.sub);

describe("an application for Supabase in Node", () => {
  const fixture = useFixture(() => openRealtimeFixture(SCHEMA, SETTINGS));

  const addNote = (owner: string, body: string) =>
    fixture.owner.query("insert into public.notes (owner, body) values ($1, $2)", [owner, body]);

  test("signs up, reads and hears its own rows, refreshes, and is signed out everywhere", async () => {
    const { client, events, storage } = makeStoringClient(fixture.service.url);
    const email = newAddress();
    const { data, error } = await client.auth.signUp({ email, password: PASSWORD });
    expect(error).toBeNull();
    const subject = subjectOf(data.session!.access_token);

    const heard: string[] = [];
    const channel = client
      .channel("notes")
      .on("postgres_changes", { event: "INSERT", schema: "public", table: "notes" }, ({ new: row }) =>
        heard.push(row.body),
      );
    await subscribed(channel);
    await until(async () => {
      await addNote(subject, "mine");
      await addNote("somebody else", "not mine");
      return heard.length > 0;
    });
    expect(new Set(heard)).toEqual(new Set(["mine"]));
    const read = async () => (await client.from("notes").select("body")).data;
    expect(new Set((await read())!.map(({ body }) => body))).toEqual(new Set(["mine"]));

    // The access token seems to expire in ten seconds.
    const stored = JSON.parse(storage.getItem("session")!);
    storage.setItem("session", JSON.stringify({ ...stored, expires_at: Math.floor(Date.now() / 1000) + 10 }));
    const { data: renewed } = await client.auth.getSession();
    expect(renewed.session!.refresh_token).not.toBe(stored.refresh_token);
    expect(await read()).not.toEqual([]);

    await client.auth.updateUser({ data: { color: "green" } });
    const other = makeClient(fixture.service.url);
    await other.auth.signInWithPassword({ email, password: PASSWORD });
    await other.auth.signOut();
    const begun = performance.now();
    await until(async () => (await client.from("notes").select("body")).status === 401);
    expect(performance.now() - begun).toBeLessThan(5_500);

    expect((await client.auth.refreshSession()).error).toMatchObject({ status: 400 });
    expect((await client.auth.getUser()).error).toMatchObject({ name: "AuthSessionMissingError" });
    await until(() => events.includes("SIGNED_OUT"));
    expect(events).toEqual(["INITIAL_SESSION", "SIGNED_IN", "TOKEN_REFRESHED", "USER_UPDATED", "SIGNED_OUT"]);
    await client.removeAllChannels();
  });

  const elsewhere: Readonly<
    Record<string, (auth: ReturnType<typeof makeClient>["auth"]) => Promise<{ error: unknown }>>
  > = {
    "a new password": (auth) => auth.updateUser({ password: `${PASSWORD}!` }),
    "a sign-out everywhere": (auth) => auth.signOut({ scope: "global" }),
    "a sign-out of the others": (auth) => auth.signOut({ scope: "others" }),
  };

  test.each(Object.entries(elsewhere))("loses its sockets within five seconds after %s", async (_name, end) => {
    const { client } = makeStoringClient(fixture.service.url);
    const email = newAddress();
    const { data } = await client.auth.signUp({ email, password: PASSWORD });
    const channel = client
      .channel("notes")
      .on("postgres_changes", { event: "*", schema: "public", table: "notes" }, () => {});
    await subscribed(channel);
    const wire = await Wire.open(`${fixture.service.url.replace(/^http/, "ws")}/graphql`, "graphql-transport-ws");
    wire.say({ type: "connection_init", payload: { Authorization: `Bearer ${data.session!.access_token}` } });
    expect(await wire.hear()).toMatchObject({ type: "connection_ack" });

    const other = makeClient(fixture.service.url);
    await other.auth.signInWithPassword({ email, password: PASSWORD });
    expect((await end(other.auth)).error).toBeNull();
    const begun = performance.now();
    expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
    await until(() => channel.state !== "joined");
    expect(performance.now() - begun).toBeLessThan(6_000);
    await client.removeAllChannels();
  });

  test("loses its channel within five seconds when the account is disabled", async () => {
    const { client } = makeStoringClient(fixture.service.url);
    const { data } = await client.auth.signUp({ email: newAddress(), password: PASSWORD });
    const channel = client
      .channel("more notes")
      .on("postgres_changes", { event: "*", schema: "public", table: "notes" }, () => {});
    await subscribed(channel);
    await fixture.owner.query("update auth.users set banned_until = now() + interval '1 hour' where id = $1", [
      data.user!.id,
    ]);
    const begun = performance.now();
    await until(() => channel.state !== "joined");
    expect(performance.now() - begun).toBeLessThan(6_000);
    expect((await client.auth.getUser()).error).toMatchObject({ status: 403, code: "user_banned" });
    await client.removeAllChannels();
  });
});

describeInBrowser("an application for Supabase in a browser", () => {
  let context: BrowserContext;
  let application: Server;
  let origin: string;

  const fixture = useFixture(() => openRealtimeFixture(SCHEMA, SETTINGS));
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    context = await browser.newContext();
    const script = await readFile("node_modules/@supabase/supabase-js/dist/umd/supabase.js");
    application = createServer(({ url }, response) => {
      const [type, body] = url === "/supabase.js" ? ["text/javascript", script] : ["text/html", PAGE];
      response.setHeader("Content-Type", type).end(body);
    }).listen(0, "127.0.0.1");
    await once(application, "listening");
    origin = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
  });
  afterAll(() => void application?.close());

  /** A tab with a client, as `window.client`, and its events as `window.events`. */
  async function openTab(): Promise<Page> {
    const page = await context.newPage();
    await page.goto(origin);
    await page.evaluate(
      ([url, key]) => {
        // biome-ignore lint/suspicious/noExplicitAny: globals of the page.
        const global = globalThis as any;
        global.client = global.supabase.createClient(url, key);
        global.events = [];
        global.client.auth.onAuthStateChange((event: string) => void global.events.push(event));
      },
      [fixture.service.url, ANON_KEY] as const,
    );
    return page;
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a page returns is what its test says.
  const inTab = (page: Page, code: string): Promise<any> => page.evaluate(`(async () => ${code})()`);
  const eventsOf = (page: Page): Promise<string[]> => inTab(page, "events");

  test("shares its session between tabs, which refresh at once, and signs out of both", async () => {
    const [one, two] = [await openTab(), await openTab()];
    const email = newAddress();
    const error = await inTab(
      one,
      `(await client.auth.signUp({ email: "${email}", password: "${PASSWORD}" })).error?.message ?? null`,
    );
    expect(error).toBeNull();
    await until(async () => (await eventsOf(two)).includes("SIGNED_IN"));
    expect(await inTab(two, "(await client.auth.getUser()).data.user.email")).toBe(email);
    expect(await inTab(two, "(await client.from('notes').select('body')).status")).toBe(200);

    // A tab drops its own result if the other one has stored a session meanwhile.
    const refresh = "(await client.auth.refreshSession()).error?.name ?? null";
    const results = await Promise.all([inTab(one, refresh), inTab(two, refresh)]);
    expect(results).toContain(null);
    expect([null, "AuthRefreshDiscardedError"]).toEqual(expect.arrayContaining(results));
    const token = "(await client.auth.getSession()).data.session.refresh_token";
    await until(async () => (await inTab(one, token)) === (await inTab(two, token)));
    expect(await inTab(one, refresh)).toBeNull();

    const code = "(await client.auth.signInWithPassword({ email: 'nobody@example.org', password: 'x' })).error.code";
    expect(await inTab(two, code)).toBe("invalid_credentials");
    await inTab(two, "(await client.auth.signOut()).error");
    await until(async () => (await eventsOf(one)).at(-1) === "SIGNED_OUT");
    expect(await inTab(one, "(await client.auth.getSession()).data.session")).toBeNull();
  });
});
