import type { Caller } from "#accounts/identity";
import { type GatewayRequest, isReadMethod } from "#http";
import type { Awaitable, ParsedRequest, Pipeline, ReadyResponse, RequestState } from "./dialect.ts";

/** Parses URL, headers and body to an intent, or refuses them. Null for OPTIONS at an address that exists. */
export async function parse<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  pipeline: Pipeline<Parsed>,
): Promise<RequestState<Parsed> | ReadyResponse | null> {
  request.stages.enter("parse");
  const parsing = pipeline.dialect.parse(request, caller);
  const parsed = parsing instanceof Promise ? await parsing : parsing;
  if (parsed === null || "response" in parsed) return parsed;
  return { request, caller, pipeline, parsed, context: null, failed: null };
}

export function bodyOf({ body }: ParsedRequest): Awaitable<Buffer> {
  return typeof body === "function" ? body() : body;
}

/** Returns the same request with a body that can be read again when it is parsed again. */
export function withRereadableBody(request: GatewayRequest): GatewayRequest {
  const { method } = request;
  if (isReadMethod(method)) return request;
  let body: Promise<Buffer> | null = null;
  return { ...request, readBody: (limit) => (body ??= request.readBody(limit)) };
}
