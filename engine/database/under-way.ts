import type { Exchange } from "./exchange.ts";

/** A statement that Postgres works on, or has been sent. */
export type UnderWay = {
  /** Of the session, as `pg_stat_activity` has it. Behind a pooler it means nothing. */
  readonly pid: number;
  /** How long the session has been at what is first in line. */
  readonly milliseconds: number;
  readonly role: string | null;
  readonly interface: string | null;
  readonly request: string | null;
  /** Without its values. */
  readonly statement: string;
};

type Session = { readonly pid: number; readonly milliseconds: number };

export function underWay({ pid, milliseconds }: Session, { steps, main }: Exchange): UnderWay {
  const context = steps.find(({ isContext }) => isContext);
  const settingOf = (name: string): string | null => {
    const place = context?.shape.text.match(new RegExp(`set_config\\('${name}',\\$(\\d+),`))?.[1];
    return place === undefined ? null : String(context!.values[Number(place) - 1]);
  };
  return {
    pid,
    milliseconds: Math.round(milliseconds),
    role: settingOf("role"),
    interface: settingOf("request\\.interface"),
    request: settingOf("request\\.id"),
    statement: steps[main]!.shape.text,
  };
}
