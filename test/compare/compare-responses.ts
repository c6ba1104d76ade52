import { isDeepStrictEqual } from "node:util";
import type { ComparedService } from "./compared-databases.ts";
import { type ComparedRequest, type ComparedResponse, send, withoutChance } from "./send-request.ts";

/** The number of simultaneous reads, on several sessions. */
const READS = 8;
/** The characters that are shown of two bodies, from a little before the first one that differs. */
const SHOWN_BEFORE = 80;
const SHOWN = 240;

/** Sends both the same requests, and describes the responses that differ. */
export async function compareResponses(
  before: ComparedService,
  after: ComparedService,
  requests: readonly ComparedRequest[],
): Promise<string[]> {
  const [expected, responses] = await Promise.all([respondToAll(before, requests), respondToAll(after, requests)]);
  return requests.flatMap((request, index) => {
    const [one, other] = [expected[index]!, responses[index]!];
    // Most are equal as they are, which is quicker to see.
    if (isDeepStrictEqual(one, other)) return [];
    const difference = describeDifference(
      withoutChance(before.url, request.path, one),
      withoutChance(after.url, request.path, other),
    );
    return difference === null ? [] : [`${describeRequest(request)}\n${difference}`];
  });
}

async function respondToAll(
  service: ComparedService,
  requests: readonly ComparedRequest[],
): Promise<ComparedResponse[]> {
  const responses: ComparedResponse[] = [];
  while (responses.length < requests.length) {
    const next = requests.slice(responses.length, responses.length + READS);
    const write = next.findIndex((request) => !isRead(request));
    if (write === 0) await service.rewind();
    const group = next.slice(0, write < 0 ? READS : Math.max(write, 1));
    responses.push(...(await Promise.all(group.map((request) => send(service.url, request)))));
  }
  return responses;
}

function isRead({ method, path, body }: ComparedRequest): boolean {
  if (["GET", "HEAD", "OPTIONS"].includes(method)) return true;
  return path === "/graphql" && body !== null && !textOf(body).includes("mutation");
}

const textOf = (body: string) => Buffer.from(body, "base64").toString("utf8");

function describeRequest({ method, path, headers, body }: ComparedRequest): string {
  return `${method} ${path} ${JSON.stringify(headers)} ${body === null ? "" : textOf(body).slice(0, 500)}`;
}

/** Null where they are equal. */
function describeDifference(before: ComparedResponse, after: ComparedResponse): string | null {
  const names = [...new Set([...Object.keys(before.headers), ...Object.keys(after.headers)])];
  const differing = names.filter((name) => before.headers[name] !== after.headers[name]);
  const lines = [
    ...(before.status === after.status ? [] : [`- status ${before.status}`, `+ status ${after.status}`]),
    ...differing.flatMap((name) => [`- ${name}: ${before.headers[name]}`, `+ ${name}: ${after.headers[name]}`]),
    ...(before.body === after.body ? [] : describeBodies(before.body, after.body)),
  ];
  return lines.length === 0 ? null : lines.join("\n");
}

function describeBodies(before: string, after: string): string[] {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  const start = Math.max(0, at - SHOWN_BEFORE);
  return [`- …${before.slice(start, start + SHOWN)}`, `+ …${after.slice(start, start + SHOWN)}`];
}
