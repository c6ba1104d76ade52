import { createClient } from "@supabase/supabase-js";
import { resuming } from "#realtime";

/** A gap, from the last row before its report to the first row after it. */
export type Gap = { readonly from: number; readonly told: number; until: number };

export type Subscriber = {
  /** The number of times that each row was received. */
  readonly received: ReadonlyMap<number, number>;
  readonly gaps: readonly Gap[];
  /** Returns the number of times that the connection was closed. */
  readonly closes: () => number;
  close(): Promise<void>;
};

/** Opens a client of supabase-js that resumes after each lost connection, and receives the rows with one writer's label. */
export async function subscribe(url: string, apiKey: string, label: string): Promise<Subscriber> {
  const received = new Map<number, number>();
  const gaps: Gap[] = [];
  let last = Date.now();
  let closes = 0;
  class CountingSocket extends WebSocket {
    constructor(...address: ConstructorParameters<typeof WebSocket>) {
      super(...address);
      this.addEventListener("close", () => closes++);
    }
  }
  const client = createClient(url, apiKey, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    realtime: { reconnectAfterMs: () => 50, transport: resuming(CountingSocket) as never },
  });
  const changes = { event: "INSERT", schema: "public", table: "marks", filter: `note=eq.${label}` } as const;
  await new Promise<void>((joined) => {
    client
      .channel("marks")
      .on("postgres_changes", changes, ({ new: row }) => {
        const { number } = row as { number: number };
        received.set(number, (received.get(number) ?? 0) + 1);
        last = Date.now();
        const gap = gaps.at(-1);
        if (gap?.until === Number.POSITIVE_INFINITY) gap.until = last;
      })
      .on("system", {}, ({ status }: { status: string }) => {
        if (status === "error") gaps.push({ from: last, told: Date.now(), until: Number.POSITIVE_INFINITY });
        else if (status === "ok") joined();
      })
      .subscribe();
  });
  return {
    received,
    gaps,
    closes: () => closes,
    close: async () => void (await client.realtime.disconnect()),
  };
}
