import { isJsonObject } from "../../engine/json/json-values.ts";

/** The payload of a join; missing and invalid values have their defaults. */
export type JoinRequest = {
  readonly token: string | null;
  readonly isPrivate: boolean;
  readonly broadcast: { readonly ack: boolean; readonly self: boolean; readonly replicationReady: boolean };
  readonly presence: { readonly key: string | null; readonly enabled: boolean };
  readonly bindings: readonly BindingRequest[];
  /** How long the reply may wait for table changes; null: it does not wait. */
  readonly waitMs: number | null;
  /** The position of the last change that the client received: our extension of the protocol. */
  readonly resume: string | null;
};

/** `{"event":"*","schema":"public","table":"items","filter":"id=eq.1","select":["id"]}`, unchanged, as it is echoed. */
export type BindingRequest = Readonly<Record<string, unknown>>;

const MAX_WAIT_MS = 60_000;
const DEFAULT_WAIT_MS = 15_000;

export function parseJoinRequest(payload: unknown): JoinRequest {
  const { config, access_token: token, user_token: olderName } = isJsonObject(payload) ? payload : {};
  const { private: isPrivate, postgres_changes: bindings, resume, ...rest } = isJsonObject(config) ? config : {};
  const broadcast = isJsonObject(rest.broadcast) ? rest.broadcast : {};
  const presence = isJsonObject(rest.presence) ? rest.presence : {};
  const options = isJsonObject(rest.postgres_changes_options) ? rest.postgres_changes_options : {};
  return {
    token: parseToken(token ?? olderName),
    isPrivate: parseBoolean(isPrivate),
    broadcast: {
      ack: parseBoolean(broadcast.ack),
      self: parseBoolean(broadcast.self),
      replicationReady: parseBoolean(broadcast.replication_ready),
    },
    presence: {
      key: parsePresenceKey(presence.key),
      enabled: parseBoolean(presence.enabled),
    },
    bindings: Array.isArray(bindings) ? bindings.filter(isJsonObject) : [],
    waitMs: parseBoolean(options.wait) ? parseWait(options.timeout) : null,
    resume: typeof resume === "string" ? resume : null,
  };
}

/** Some clients send an API key of the new format in place of a token; the socket has it already. */
export function parseToken(value: unknown): string | null {
  return typeof value === "string" && !value.startsWith("sb_") ? value : null;
}

function parsePresenceKey(value: unknown): string | null {
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isScalar && value !== "" ? String(value) : null;
}

function parseWait(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(value, MAX_WAIT_MS) : DEFAULT_WAIT_MS;
}

function parseBoolean(value: unknown): boolean {
  return value === true || (typeof value === "string" && value.toLowerCase() === "true");
}
