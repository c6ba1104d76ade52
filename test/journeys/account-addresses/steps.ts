import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { csrfTokenOf } from "../../../http/csrf-protection.ts";
import { openBrowser } from "../../rest-gateway/sign-in/browser.ts";
import { accountOf, ask, type Credentials, PASSWORDS } from "./holder.ts";
import { PUBLIC_URL, type Site } from "./site.ts";
import type { AddressKind, Way } from "./ways.ts";

/** Somebody who takes a way: the values that were entered and received, and an account that the person has already. */
export type Actor = {
  readonly values: Record<string, string>;
  readonly own?: { readonly id: string; readonly email: string; readonly credentials: Credentials };
  /** The credentials that the last sign-in has returned. */
  session: Credentials;
  /** The answer to each step, for the message of a failure. */
  readonly transcript: string[];
  /** Ends the waiting for messages with the test. */
  readonly signal?: AbortSignal;
};

export async function newActor(site: Site, kind: AddressKind, address: string, signal: AbortSignal): Promise<Actor> {
  const account = await accountOf(site, kind, address);
  const claims = { sub: address, email: address, name: "N" };
  return {
    values: {
      ...PASSWORDS,
      v: address,
      id: account?.id ?? "0",
      uuid: account?.uuid ?? randomUUID(),
      verifier: "a".repeat(43),
      idToken: await site.forger.idToken({ ...claims, email_verified: true }),
      unverifiedToken: await site.forger.idToken({ ...claims, sub: randomUUID(), email_verified: false }),
    },
    session: {},
    transcript: [],
    signal,
  };
}

/** Takes the steps; without messages, up to the first that is waited for. */
export async function take(site: Site, way: Way, actor: Actor, { isAnswered }: { readonly isAnswered: boolean }) {
  for (const [index, step] of way.steps.entries()) {
    if (step.startsWith("MAIL")) {
      if (!isAnswered) return;
      await receive(site, actor, step);
      continue;
    }
    if (/^MAIL( 6)?$/.test(way.steps[index + 1] ?? "")) await countMessages(site, actor);
    await takeStep(site, actor, fill(step, actor.values));
  }
}

async function countMessages(site: Site, { values, own }: Actor): Promise<void> {
  values.seen = String((await site.messagesTo(values.v!)).length);
  if (own) values.seenOwn = String((await site.messagesTo(own.email)).length);
}

/** `MAIL` is the next message to the address, `MAIL 6` the next one with a code, and `MAIL OWN` one to the actor's own address. */
async function receive(site: Site, { values, own, signal }: Actor, step: string): Promise<void> {
  const isOwn = step === "MAIL OWN";
  const [address, seen] = isOwn ? [own!.email, Number(values.seenOwn)] : [values.v!, Number(values.seen)];
  for (let count = seen + 1; ; count++) {
    const message = (await site.receive(address, count, signal))[count - 1]!;
    if (step === "MAIL 6" && message.code === "") continue;
    Object.assign(values, { token: message.token, code: message.code, link: pathOf(message.link) });
    return;
  }
}

function pathOf(link: string): string {
  const url = URL.parse(link);
  return url === null ? "" : url.pathname + url.search;
}

function fill(step: string, values: Readonly<Record<string, string>>): string {
  return step.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

async function takeStep(site: Site, actor: Actor, step: string): Promise<void> {
  const [, who = "", method = "", path = "", body = ""] = /^(?:@(\w+) )?(\S+) (\S+) ?(.*)$/s.exec(step)!;
  if (method === "OPENID" || method === "SAML") return signInAtProvider(site, actor, method, path);
  const response = await ask(site, path, requestOf(site, actor, { who, method, body }));
  actor.transcript.push(`${step}\n  ${response.status} ${response.text.slice(0, 300)}`);
  keep(actor, response.json, response.headers);
}

type Step = { readonly who: string; readonly method: string; readonly body: string };

function requestOf(
  site: Site,
  actor: Actor,
  { who, method, body }: Step,
): RequestInit & { headers: Record<string, string> } {
  const isForm = method === "FORM";
  const bearer = { admin: site.adminToken, me: actor.own?.credentials.accessToken, session: actor.session.accessToken }[
    who
  ];
  const cookie = isForm && who === "me" ? actor.own!.credentials.cookie! : null;
  const type = isForm ? "application/x-www-form-urlencoded" : "application/json";
  return {
    method: isForm ? "POST" : method,
    headers: {
      ...(body !== "" && { "Content-Type": type }),
      ...(isForm && { Origin: PUBLIC_URL, Accept: "text/html" }),
      ...(cookie !== null ? { Cookie: cookie } : bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    },
    ...(body !== "" && { body: isForm ? body.replaceAll("+", "%2B").replaceAll("@", "%40") : body }),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the responses of all interfaces.
function keep(actor: Actor, json: any, headers: Headers): void {
  const { values, session } = actor;
  for (const [name, value] of Object.entries(json ?? {})) if (typeof value === "string") values[name] = value;
  const location = URL.parse(headers.get("location") ?? "", PUBLIC_URL);
  const fragment = new URLSearchParams(location?.hash.slice(1));
  const code = location?.searchParams.get("code");
  if (code) values.auth_code = code;
  const cookie = headers.getSetCookie().find((each) => each.startsWith("SESSION="));
  if (cookie) session.cookie = cookie.split(";", 1)[0]!;
  if (json?.refreshToken) session.refreshToken = json.refreshToken;
  const accessToken = json?.access_token ?? json?.accessToken ?? fragment.get("access_token");
  if (accessToken) session.accessToken = accessToken;
  const sessionToken = json?.refresh_token ?? fragment.get("refresh_token");
  if (sessionToken) session.sessionToken = sessionToken;
}

/** The person who reads the mail of the address is also the one who signs in at the provider. */
async function signInAtProvider(site: Site, actor: Actor, method: string, path: string): Promise<void> {
  const browser = openBrowser({ hosts: { [PUBLIC_URL]: site.service.url } });
  const start = PUBLIC_URL + path;
  const view = await (method === "SAML"
    ? site.signInWithSaml(browser, start, actor.values.v!)
    : site.openId.signIn(browser, start, actor.values.v!.split("@")[0]!));
  actor.transcript.push(`${method} ${path}\n  ${view.status} ${view.url} ${view.text.slice(0, 300)}`);
  const session = browser.cookies(PUBLIC_URL).get("SESSION");
  const headers = new Headers({ location: view.url.href });
  if (session) headers.append("set-cookie", `SESSION=${session}`);
  keep(actor, view.body, headers);
}

/** The token that a form of the account page carries. */
export function csrfOf({ cookie = "" }: Credentials): string {
  return csrfTokenOf(cookie.replace("SESSION=", ""));
}

/** The addresses or numbers that tokens claim, of those that these credentials have or can be exchanged for. */
export async function claimedBy(site: Site, kind: AddressKind, credentials: Credentials): Promise<string[]> {
  const tokens = [credentials.accessToken];
  for (const token of [credentials.refreshToken, credentials.sessionToken]) {
    if (token === undefined) continue;
    const refreshed = await ask(site, "/auth/v1/token?grant_type=refresh_token", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ refresh_token: token }),
    });
    tokens.push(refreshed.json?.access_token);
  }
  const claimed = tokens.flatMap((token) => (token ? [(jwt.decode(token) as jwt.JwtPayload)[kind]] : []));
  return [...new Set(claimed.filter((each) => each !== undefined && each !== ""))];
}
