import type { IntendedDifference } from "./intended-differences.ts";

/** One request that both programs are asked. */
export type Case = {
  readonly name: string;
  readonly method: string;
  /** The path on the wire, with characters that must be escaped there; see `wirePath`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  readonly caller: Caller;
  /** The code of the error that PostgREST refuses it with, "ok", or "any" where the case was not written for one. */
  readonly outcome: string;
  /** An execution plan and the OpenAPI document are each program's own; of a mutilated request only the code must agree. */
  readonly compared: "all" | "all but the body" | "status and code";
  /** Null: ours answers the same. */
  readonly differs: { readonly because: IntendedDifference; readonly ours: Expected } | null;
};

export type Expected = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
};

/** Anonymous, a role, the claims of a token, or a token as it is. */
export type Caller = "anon" | { readonly role: string; readonly [claim: string]: unknown } | { readonly token: string };

export type Group = { readonly name: string; readonly cases: readonly Case[] };
export type Area = {
  readonly name: string;
  /** The settings that differ from those of the other areas. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly groups: readonly Group[];
};

type Options = {
  readonly name?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly prefer?: string;
  readonly accept?: string;
  readonly type?: string;
  readonly profile?: string;
  readonly range?: string;
  readonly as?: Caller;
  readonly fails?: string;
  readonly compared?: Case["compared"];
  readonly differs?: IntendedDifference;
  readonly ours?: Expected;
};
type Body = string | Buffer | object | null;

export const ADA: Caller = { role: "authenticated", sub: "ada" };
export const SERVICE: Caller = { role: "service_role" };

export function group(name: string, cases: readonly (Case | readonly Case[])[]): Group {
  return { name, cases: cases.flat() };
}

export function get(path: string, options: Options = {}): Case {
  return ask("GET", path, null, options);
}

export function head(path: string, options: Options = {}): Case {
  return ask("HEAD", path, null, options);
}

export function post(path: string, body: Body, options: Options = {}): Case {
  return ask("POST", path, body, options);
}

export function patch(path: string, body: Body, options: Options = {}): Case {
  return ask("PATCH", path, body, options);
}

export function put(path: string, body: Body, options: Options = {}): Case {
  return ask("PUT", path, body, options);
}

export function remove(path: string, options: Options = {}): Case {
  return ask("DELETE", path, null, options);
}

/** Asks for the rows, so that a write shows its effect. */
export function returning(request: Case): Case {
  const { Prefer: preferences } = request.headers;
  const Prefer = preferences ? `${preferences}, return=representation` : "return=representation";
  return { ...request, name: `${request.name} → rows`, headers: { ...request.headers, Prefer } };
}

export function ask(method: string, path: string, body: Body, options: Options = {}): Case {
  const { name, headers, as = "anon", fails, compared = "all", differs, ours } = options;
  const text = body === null || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return {
    name: name ? `${name}: ${method} ${path}` : [method, path, ...described(text, options)].join(" "),
    method,
    path,
    headers: { ...headersOf(method, text, options), ...headers },
    body: text,
    caller: as,
    outcome: fails ?? "ok",
    compared,
    differs: differs ? { because: differs, ours: ours ?? {} } : null,
  };
}

function headersOf(method: string, body: Case["body"], { prefer, accept, type, profile, range }: Options) {
  const writes = !["GET", "HEAD", "OPTIONS"].includes(method);
  return {
    ...(body !== null && { "Content-Type": type ?? "application/json" }),
    ...(prefer !== undefined && { Prefer: prefer }),
    ...(accept !== undefined && { Accept: accept }),
    ...(profile !== undefined && { [writes ? "Content-Profile" : "Accept-Profile"]: profile }),
    ...(range !== undefined && { Range: range, "Range-Unit": "items" }),
  };
}

function described(body: Case["body"], { prefer, accept, type, profile, range, as, headers }: Options): string[] {
  const shown = Object.entries({ ...(prefer && { Prefer: prefer }), accept, type, profile, range, ...headers });
  return [
    ...(body === null ? [] : [String(body).slice(0, 120)]),
    ...shown.flatMap(([name, value]) => (value === undefined ? [] : [`(${name}: ${value})`])),
    ...(as === undefined || as === "anon" ? [] : [`(as ${JSON.stringify(as)})`]),
  ];
}
