/** The present clients by key: the data that each client with this key has tracked. */
export type PresenceState = Readonly<Record<string, readonly PresenceMeta[]>>;

type PresenceMeta = Readonly<Record<string, unknown>> & { readonly phx_ref?: string };

type PresenceEntries = Readonly<Record<string, { readonly metas: readonly PresenceMeta[] }>>;

export type PresenceDiff = { readonly joins?: PresenceEntries; readonly leaves?: PresenceEntries };

export function presenceState(payload: unknown): PresenceState {
  return Object.fromEntries(Object.entries(payload as PresenceEntries).map(([key, { metas }]) => [key, metas]));
}

/** Applies a diff. The `phx_ref` identifies a client that has left. */
export function applyPresence(state: PresenceState, { joins = {}, leaves = {} }: PresenceDiff): PresenceState {
  const next = new Map(Object.entries(state));
  for (const [key, { metas }] of Object.entries(leaves)) {
    const gone = new Set(metas.map((meta) => meta.phx_ref));
    next.set(
      key,
      (next.get(key) ?? []).filter((meta) => !gone.has(meta.phx_ref)),
    );
  }
  for (const [key, { metas }] of Object.entries(joins)) {
    const known = new Set((next.get(key) ?? []).map((meta) => meta.phx_ref));
    next.set(key, [...(next.get(key) ?? []), ...metas.filter((meta) => !known.has(meta.phx_ref))]);
  }
  return Object.fromEntries([...next].filter(([, metas]) => metas.length > 0));
}

export function toChannelCode(name: string, isPrivate: boolean): string {
  const config = isPrivate ? ", { config: { private: true } }" : "";
  return `const channel = supabase
  .channel(${JSON.stringify(name)}${config})
  .on("broadcast", { event: "*" }, ({ event, payload }) => console.log(event, payload))
  .on("presence", { event: "sync" }, () => console.log(channel.presenceState()))
  .subscribe((status) => status === "SUBSCRIBED" && channel.track({ online: true }));`;
}
