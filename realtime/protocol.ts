import { isJsonObject } from "../engine/json-object.ts";

/** https://hexdocs.pm/phoenix/writing_a_channels_client.html; the broadcast frames are Supabase's own. */
export type Version = "1.0.0" | "2.0.0";

/** What a client writes. `ref` and `joinRef` are echoed as they came. */
export type Message = {
  readonly joinRef: string | null;
  readonly ref: string | null;
  readonly topic: string;
  readonly event: string;
  readonly payload: unknown;
};

export type Envelope = Omit<Message, "payload">;

/** A client that does not say speaks the first one. Null: one that is not spoken here. */
export function readVersion(text: string | null): Version | null {
  if (text === null || /^1\./.test(text)) return "1.0.0";
  return /^2\./.test(text) ? "2.0.0" : null;
}

/** Null for what cannot be read, which is passed over. */
export function parseMessage(text: string, version: Version): Message | null {
  const written = parseJson(text);
  if (version === "2.0.0") {
    if (!Array.isArray(written) || written.length !== 5) return null;
    const [joinRef, ref, topic, event, payload] = written;
    return toMessage({ join_ref: joinRef, ref, topic, event, payload });
  }
  return isJsonObject(written) ? toMessage(written) : null;
}

// As long as a topic can be whose letters are all escaped.
const SCALAR = String.raw`(?:"(?:[^"\\]|\\.){0,6000}"|[\w.+-]{1,100})`;
const MEMBER = String.raw`\s*"(?:topic|event|ref|join_ref)"\s*:\s*${SCALAR}\s*`;
const BEFORE = {
  "1.0.0": new RegExp(String.raw`^\s*\{(?:${MEMBER},)*\s*"payload"\s*:`),
  "2.0.0": new RegExp(String.raw`^\s*\[(?:\s*${SCALAR}\s*,){4}`),
};
const BEHIND = new RegExp(String.raw`^\s*(?:,${MEMBER})*$`);

/** The payload of a message that could be read, an object, as it is spelled; null where that is not certain. */
export function payloadText(text: string, version: Version): string | null {
  const start = BEFORE[version].exec(text)?.[0].length;
  if (start === undefined) return null;
  const last = text.lastIndexOf(version === "2.0.0" ? "]" : "}");
  const end = text.lastIndexOf("}", last - 1) + 1;
  const payload = text.slice(start, end);
  return BEHIND.test(text.slice(end, last)) && isJson(payload) ? payload : null;
}

/** Of a long message, so much at each end is looked at. */
const PEEKED_BYTES = 16 * 1024;

/** What stands around the payload of a long message, which is not read; null where that cannot be told. */
export function peekEnvelope(data: Buffer, version: Version): Envelope | null {
  const before = BEFORE[version].exec(data.toString("utf8", 0, PEEKED_BYTES))?.[0];
  if (before === undefined) return null;
  const behind = behindPayload(data.toString("utf8", data.length - PEEKED_BYTES), version);
  return behind === null ? null : parseMessage(`${before}null${behind}`, version);
}

/** `,"ref":"1"}`; null where that is not certain. */
function behindPayload(text: string, version: Version): string | null {
  const last = text.lastIndexOf(version === "2.0.0" ? "]" : "}");
  const end = text.lastIndexOf("}", last - 1) + 1;
  return end > 0 && BEHIND.test(text.slice(end, last)) ? text.slice(end) : null;
}

/** `payload` is JSON already: it is spelled once for many receivers. */
export function spellMessage(version: Version, { joinRef, ref, topic, event }: Envelope, payload: string): string {
  const name = JSON.stringify(topic);
  const what = JSON.stringify(event);
  if (version === "2.0.0") return `[${spellRef(joinRef)},${spellRef(ref)},${name},${what},${payload}]`;
  const join = joinRef === null ? "" : `,"join_ref":${spellRef(joinRef)}`;
  return `{"topic":${name},"event":${what},"payload":${payload},"ref":${spellRef(ref)}${join}}`;
}

/** How many levels a message may have. */
export const DEEPEST = 1_000;

/** What is written deeper than anybody would can be read, but not written again: that ends by exhausting the stack. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member));
}

function toMessage({
  join_ref: joinRef,
  ref,
  topic,
  event,
  payload,
}: Readonly<Record<string, unknown>>): Message | null {
  if (typeof topic !== "string" || typeof event !== "string") return null;
  return { joinRef: toRef(joinRef), ref: toRef(ref), topic, event, payload };
}

function toRef(value: unknown): string | null {
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}

function spellRef(ref: string | null): string {
  return ref === null ? "null" : JSON.stringify(ref);
}

/** A text as it is, anything else as JSON: an object that brings a toString of its own cannot be made a text. */
export function spellWord(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
