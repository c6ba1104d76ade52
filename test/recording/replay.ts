import { serverBinaries } from "../server-binaries.ts";
import { type Exchange, send } from "./exchange.ts";
import type { RecordedService } from "./recorded-areas.ts";
import { readRecording } from "./recording.ts";
import { answersOtherwise } from "./version-differences.ts";

const isRead = ({ method }: Exchange["request"]) => ["GET", "HEAD", "OPTIONS"].includes(method);

export async function respond(service: RecordedService, request: Exchange["request"]): Promise<Exchange> {
  if (!isRead(request)) await service.rewind();
  return { request, response: await send(service.url, request) };
}

export type ReplayResult = { readonly requests: number; readonly differences: readonly string[] };

type ReplayOptions = {
  /** The number of requests to send, from the first one on. */
  readonly most?: number;
  /** How many reads in sequence may be sent at the same time. */
  readonly reads?: number;
};

/** Sends the recorded requests of an area and describes the responses that differ. */
export async function replay(
  service: RecordedService,
  area: string,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const { most, reads = 1 } = options;
  const { major } = await serverBinaries();
  const recording = (await readRecording<Exchange>(area)).slice(0, most);
  const sent = recording.filter(({ request }) => !answersOtherwise(major, request));
  const differences: string[] = [];
  for (let at = 0; at < sent.length; ) {
    const next = sent.slice(at, at + reads);
    const write = next.findIndex(({ request }) => !isRead(request));
    const group = next.slice(0, write < 0 ? reads : Math.max(write, 1));
    at += group.length;
    const responses = await Promise.all(group.map(({ request }) => respond(service, request)));
    for (const [index, { request, response }] of responses.entries()) {
      const difference = describeDifference(group[index]!.response, response);
      if (difference !== null) differences.push(`${describeRequest(request)}\n${difference}`);
    }
  }
  return { requests: sent.length, differences };
}

function describeRequest({ method, path, headers, body }: Exchange["request"]): string {
  const text = body === null ? "" : Buffer.from(body, "base64").toString("utf8").slice(0, 500);
  return `${method} ${path} ${JSON.stringify(headers)} ${text}`;
}

/** Null where they are equal. */
function describeDifference(recorded: Exchange["response"], now: Exchange["response"]): string | null {
  const names = [...new Set([...Object.keys(recorded.headers), ...Object.keys(now.headers)])];
  const differing = names.filter((name) => recorded.headers[name] !== now.headers[name]);
  const lines = [
    ...(recorded.status === now.status ? [] : [`status ${recorded.status}, now ${now.status}`]),
    ...differing.map((name) => `${name}: ${recorded.headers[name]}, now ${now.headers[name]}`),
    ...(recorded.body === now.body ? [] : describeBodies(recorded.body, now.body)),
  ];
  return lines.length === 0 ? null : lines.join("\n");
}

/** Both from a little before the first character that differs. */
function describeBodies(recorded: string, now: string): string[] {
  const at = [...recorded].findIndex((character, index) => character !== now[index]);
  const start = Math.max(0, (at === -1 ? recorded.length : at) - 80);
  return [`recorded …${recorded.slice(start, start + 240)}`, `now      …${now.slice(start, start + 240)}`];
}
