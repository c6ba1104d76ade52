import type {
  Condition,
  Count,
  DeleteIntent,
  InsertIntent,
  OrderTerm,
  Payload,
  ReadIntent,
  SelectItem,
  Shape,
  UpdateIntent,
  Window,
} from "../statement/intent.ts";
import type { Collection } from "./collections.ts";

type Wish = {
  readonly select: readonly SelectItem[];
  readonly conditions?: readonly Condition[];
  readonly order?: readonly OrderTerm[];
  readonly window?: Window;
};

export function readIntent({ table }: Collection, wish: Wish, count: Count | null = null): ReadIntent {
  return { kind: "read", target: targetOf(table), shape: toShape(wish), count, page: null };
}

export function insertIntent({ table, showsNew }: Collection, wish: Wish, payload: Payload): InsertIntent {
  const returned = showsNew ? "rows" : "nothing";
  const write = { target: targetOf(table), shape: toShape(wish), returned, count: null } as const;
  // One row leaves out what it does not say; of several each may say something else.
  return { kind: "insert", ...write, payload, missingAsDefault: payload.isArray, upsert: null, single: false };
}

type Update = { readonly payload: Payload; readonly missingAsDefault: boolean };

export function updateIntent({ table }: Collection, wish: Wish, update: Update): UpdateIntent {
  const write = { target: targetOf(table), shape: toShape(wish), returned: "rows", count: null } as const;
  return { kind: "update", ...write, ...update, findsUnchanged: true };
}

export function deleteIntent({ table }: Collection, wish: Wish): DeleteIntent {
  return { kind: "delete", target: targetOf(table), shape: toShape(wish), returned: "nothing", count: null };
}

export function toShape({ select, conditions = [], order = [], window }: Wish): Shape {
  return {
    select,
    conditions: conditions.map((value) => ({ path: [], value })),
    orders: order.length > 0 ? [{ path: [], value: order }] : [],
    windows: window ? [{ path: [], value: window }] : [],
  };
}

export function targetOf({ schema, name }: { readonly schema: string; readonly name: string }) {
  return { schema, name };
}
