import { type Client, tokenOf } from "../../rest-gateway/table/client.ts";
import type { Caller, Returning } from "./access-rules.ts";
import { type RowWrite, toResourceRequest, toTableRequest, type Write } from "./writes.ts";

/** "accepted", or why a write was not. Any other answer is a text that no verdict is equal to. */
export type Verdict = "accepted" | "not found" | "denied" | "conflict" | (string & {});

const VERDICTS: Readonly<Record<string, Verdict>> = {
  "42501": "denied",
  // A key that the role may not insert is missing.
  "23502": "denied",
  "23503": "conflict",
  "23505": "conflict",
  AUTH_REQUIRED: "denied",
  PERMISSION_DENIED: "denied",
  // Fields that the role may not use do not exist.
  GRAPHQL_VALIDATION_FAILED: "denied",
  VALIDATION_ERROR: "denied",
  MISSING_FIELD: "denied",
  RESOURCE_CONFLICT: "conflict",
  RESOURCE_NOT_FOUND: "not found",
};

export function toVerdict(code: string): Verdict {
  return VERDICTS[code] ?? code;
}

export async function sendToTable(
  client: Client,
  write: Write,
  caller: Caller,
  number: number,
  returning: Returning | null,
): Promise<Verdict> {
  const { path, ...request } = toTableRequest(write, number, returning);
  const { status, body } = await client.ask(path, { ...request, body: request.body as object, as: caller });
  return status < 300 ? "accepted" : toVerdict(body.code);
}

export async function sendToResource(url: string, write: RowWrite, caller: Caller, number: number): Promise<Verdict> {
  const { path, method, body } = toResourceRequest(write, number);
  const response = await send(`${url}${path}`, method, body, caller);
  return response.ok ? "accepted" : toVerdict(JSON.parse(await response.text()).error.code);
}

type GraphqlError = { readonly message: string; readonly extensions: { readonly code: string } };

export async function sendToGraphql(url: string, query: string, caller: Caller): Promise<Verdict> {
  const response = await send(`${url}/graphql`, "POST", { query }, caller);
  const { errors } = (await response.json()) as { readonly errors?: readonly GraphqlError[] };
  if (!errors) return "accepted";
  const withoutRow = query.replace(" { __typename }", "");
  // Where the role may read no column, the mutation returns whether the row was inserted.
  const returnsNoRow = withoutRow !== query && errors[0]!.message.includes("must not have a selection");
  return returnsNoRow ? sendToGraphql(url, withoutRow, caller) : toVerdict(errors[0]!.extensions.code);
}

function send(url: string, method: string, body: unknown, caller: Caller): Promise<Response> {
  return fetch(url, {
    method,
    headers: { Authorization: `Bearer ${tokenOf(caller)}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}
