import type { IncomingHttpHeaders } from "node:http";
import { profileHeader } from "../../profile.ts";
import type { Format, Intent } from "../../statement/intent.ts";
import { readApiKey, withoutApiKey } from "../api-key.ts";
import { parseAccept } from "./accept.ts";
import type { Content } from "./content.ts";
import { type Choices, type Preferences, parsePreferences } from "./preferences.ts";
import { type Profile, parseProfile } from "./profile.ts";
import { parseQuery } from "./query.ts";
import { type Parameter, parseQueryString } from "./query-string.ts";
import { checkMethod, parseResource, type Resource } from "./resource.ts";
import { toIntent } from "./to-intent.ts";
import { parseWindows } from "./window.ts";

/** A request as it came. */
export type RawRequest = {
  readonly method: string;
  /** What follows the prefix of the interface, still percent-encoded. */
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly content: Content;
};

/** What the grammar depends on, of the settings and the catalogue. */
export type Deployment = Choices & {
  readonly schemas: readonly string[];
  readonly rootFunction: string | null;
  readonly describesItself: boolean;
};

/** What a client asks of the table interface, and how it would like to be answered. */
export type TableRequest = {
  readonly method: string;
  readonly action: Action;
  readonly profile: Profile;
  readonly preferences: Preferences;
  /** Best first. */
  readonly accept: readonly Format[];
  readonly parameters: readonly Parameter[];
  /** They in the order of their names, where that has been worked out. */
  readonly canonicalQuery?: string;
};

export type Action =
  | { readonly kind: "statement"; readonly intent: Intent }
  /** Which methods a resource has. */
  | { readonly kind: "options"; readonly resource: Resource }
  /** The OpenAPI document: of these tables, or null, of all. */
  | { readonly kind: "describe"; readonly tables: readonly string[] | null };

/** Whether a request of that method has a body that counts. */
export function hasBody(method: string): boolean {
  return method === "POST" || method === "PATCH" || method === "PUT";
}

/** What a request is about, whether or not it may be asked so. */
export function parseTarget(
  { method, path, headers }: Pick<RawRequest, "method" | "path" | "headers">,
  deployment: Deployment,
): { readonly resource: Resource; readonly profile: Profile } {
  const resource = parseResource(path, deployment);
  return { resource, profile: parseProfile(profileHeader(method, headers), deployment.schemas) };
}

export function parseRequest(
  { method, path, rawQuery, headers, content }: RawRequest,
  deployment: Deployment,
): TableRequest {
  const { resource, profile } = parseTarget({ method, path, headers }, deployment);
  checkMethod(resource, method);
  const parameters = withoutApiKey(parseQueryString(rawQuery), readApiKey(headers, rawQuery));
  const conditions = resource.kind === "root" ? parameters.filter(([name]) => name !== DESCRIBED) : parameters;
  const query = parseQuery(conditions, { withArguments: resource.kind === "function" && isRead(method) });
  const windows = parseWindows(query.bounds, { method, range: headers.range });
  const preferences = parsePreferences(headerOf("prefer"), deployment);
  const accept = parseAccept(headers.accept);
  return { method, action: toAction(), profile, preferences, accept, parameters };

  function toAction(): Action {
    if (method === "OPTIONS") return { kind: "options", resource };
    if (resource.kind === "root") return { kind: "describe", tables: describedTables(parameters) };
    const target = { schema: profile.schema, name: resource.name };
    const intent = toIntent(resource.kind, { method, target, query, windows, preferences, content });
    return { kind: "statement", intent };
  }

  /** Node joins what comes several times. */
  function headerOf(name: string): string | undefined {
    return headers[name] as string | undefined;
  }
}

/** `/?table=films&table=actors` */
const DESCRIBED = "table";

function describedTables(parameters: readonly Parameter[]): readonly string[] | null {
  const names = parameters.flatMap(([name, value]) => (name === DESCRIBED ? value : []));
  return names.length > 0 ? names : null;
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}
