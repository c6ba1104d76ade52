/** The tables of `shop.sql`, as far as payloads and plain inserts need to know them. */
export type ShopTable = {
  /** Values of the columns that a payload may give; each row has a label besides. */
  readonly columns: Readonly<Record<string, ColumnValues>>;
  readonly relations: readonly ShopRelation[];
  /** A select of the rows without the keys that are generated: labels show the rows that they refer to. */
  readonly shown: string;
};

export type ColumnValues = { readonly valid: readonly unknown[]; readonly invalid: readonly unknown[] };

type ColumnPairs = readonly (readonly [own: string, other: string])[];

export type ShopRelation = {
  /** The key in a payload. */
  readonly embed: string;
  readonly target: string;
} & (
  | { readonly kind: "to-one"; readonly columns: ColumnPairs; readonly isRequired: boolean }
  /** `isSingle`: at most one row refers to it, so the payload has an object. */
  | { readonly kind: "to-many"; readonly columns: ColumnPairs; readonly isSingle: boolean }
  | {
      readonly kind: "many-to-many";
      readonly junction: string;
      readonly columns: ColumnPairs;
      readonly targetColumns: ColumnPairs;
    }
);

const values = (valid: readonly unknown[], invalid: readonly unknown[] = []): ColumnValues => ({ valid, invalid });
const toOne = (embed: string, target: string, columns: ColumnPairs, isRequired = false): ShopRelation => ({
  kind: "to-one",
  embed,
  target,
  columns,
  isRequired,
});
const toMany = (embed: string, target: string, columns: ColumnPairs): ShopRelation => ({
  kind: "to-many",
  embed,
  target,
  columns,
  isSingle: false,
});

const OWNER = values(["ann"], ["bob", null]);
const labelOf = (table: string, key: string, column: string) =>
  `(select label from public.${table} as r where r.${key} = t.${column}) as ${column}`;
const ORDER = labelOf("orders", "id", "order_id");

export const SHOP: Readonly<Record<string, ShopTable>> = {
  customers: {
    columns: { owner: OWNER, credit: values([0, "7.50", null], [-1, "much"]), internal: values([], ["not granted"]) },
    relations: [toMany("orders", "orders", [["id", "customer_id"]])],
    shown: "label, owner, credit, internal",
  },
  products: {
    columns: { price: values([1, 2.5], [-1, null]) },
    relations: [toMany("lines", "lines", [["code", "product_code"]])],
    shown: "label, code, price",
  },
  orders: {
    columns: {
      owner: OWNER,
      customer_id: values(
        ["00000000-0000-4000-8000-000000000001", null],
        ["00000000-0000-4000-8000-00000000000f", "no id"],
      ),
      state: values(["open", "paid"], ["lost", null]),
      details: values([{ a: [1.5, "ü"] }, null]),
    },
    relations: [
      toOne("customers", "customers", [["customer_id", "id"]]),
      toMany("lines", "lines", [["id", "order_id"]]),
      toMany("order_tags", "order_tags", [["id", "order_id"]]),
      toMany("shipments", "shipments", [["id", "order_id"]]),
      toMany("events", "events", [["id", "order_id"]]),
      { kind: "to-many", embed: "notes", target: "notes", columns: [["id", "order_id"]], isSingle: true },
      {
        kind: "many-to-many",
        embed: "tags",
        target: "tags",
        junction: "order_tags",
        columns: [["id", "order_id"]],
        targetColumns: [["id", "tag_id"]],
      },
    ],
    shown: `label, owner, state, details, ${labelOf("customers", "id", "customer_id")}`,
  },
  requests: {
    columns: { owner: OWNER },
    relations: [toMany("lines", "lines", [["id", "order_id"]])],
    shown: "label",
  },
  lines: {
    columns: {
      order_id: values([1], [2, 99, null]),
      place: values([], ["first", null]),
      product_code: values(["OLD", null], ["NONE"]),
      quantity: values([1, "3"], [0, null]),
      words: values([["a", 'b"c'], [], null]),
    },
    relations: [
      toOne("orders", "orders", [["order_id", "id"]], true),
      toOne("product_code", "products", [["product_code", "code"]]),
      toMany("parcels", "parcels", [
        ["order_id", "order_id"],
        ["place", "place"],
      ]),
    ],
    shown: `label, place, product_code, quantity, words, ${ORDER}`,
  },
  parcels: {
    columns: {},
    relations: [
      toOne(
        "lines",
        "lines",
        [
          ["order_id", "order_id"],
          ["place", "place"],
        ],
        true,
      ),
    ],
    shown: "label, (select label from public.lines as r where r.order_id = t.order_id and r.place = t.place) as line",
  },
  notes: {
    columns: { order_id: values([1], [2, 99, null]), text: values(["some"], [null]) },
    relations: [toOne("orders", "orders", [["order_id", "id"]], true)],
    shown: `label, text, ${ORDER}`,
  },
  tags: {
    columns: { colour: values(["red", null]) },
    relations: [
      toMany("order_tags", "order_tags", [["id", "tag_id"]]),
      {
        kind: "many-to-many",
        embed: "orders",
        target: "orders",
        junction: "order_tags",
        columns: [["id", "tag_id"]],
        targetColumns: [["id", "order_id"]],
      },
    ],
    shown: "label, colour",
  },
  order_tags: {
    columns: { weight: values([1, 2], [null, "heavy"]), remark: values(["r", null]) },
    relations: [toOne("orders", "orders", [["order_id", "id"]], true), toOne("tags", "tags", [["tag_id", "id"]], true)],
    shown: `weight, remark, ${ORDER}, ${labelOf("tags", "id", "tag_id")}`,
  },
  addresses: {
    columns: { city: values(["Basel"], [null]) },
    relations: [
      toMany("shipments!from_address", "shipments", [["id", "from_address"]]),
      toMany("shipments!shipments_to_address_fkey", "shipments", [["id", "to_address"]]),
    ],
    shown: "label, city",
  },
  shipments: {
    columns: { order_id: values([1, null], [99]), to_address: values([1], [99, null]) },
    relations: [
      toOne("orders", "orders", [["order_id", "id"]]),
      toOne("from_address", "addresses", [["from_address", "id"]]),
      toOne("addresses!to_address", "addresses", [["to_address", "id"]], true),
    ],
    shown: `label, ${ORDER}, ${labelOf("addresses", "id", "from_address")}, ${labelOf("addresses", "id", "to_address")}`,
  },
  people: {
    columns: { boss_id: values([1, null], [2, 99, "boss"]) },
    relations: [
      toOne("boss_id", "people", [["boss_id", "id"]]),
      toMany("people", "people", [["id", "boss_id"]]),
      toMany("nodes", "nodes", [["id", "person_id"]]),
    ],
    shown: `label, ${labelOf("people", "id", "boss_id")}`,
  },
  nodes: {
    columns: { tenant: values([1, 2], [null, "x"]), parent_no: values([null], [77]) },
    relations: [
      toMany("nodes", "nodes", [
        ["tenant", "tenant"],
        ["no", "parent_no"],
      ]),
      toOne("people", "people", [["person_id", "id"]]),
    ],
    shown: `label, tenant, ${labelOf("people", "id", "person_id")},
      (select label from public.nodes as r where r.tenant = t.tenant and r.no = t.parent_no) as parent`,
  },
  projects: {
    columns: { tenant: values([1]) },
    relations: [
      toMany("tasks", "tasks", [
        ["tenant", "tenant"],
        ["code", "project_code"],
      ]),
    ],
    shown: "label, tenant, code",
  },
  members: {
    columns: { tenant: values([1]) },
    relations: [
      toMany("tasks", "tasks", [
        ["tenant", "tenant"],
        ["no", "member_no"],
      ]),
    ],
    shown: "label, tenant, no",
  },
  tasks: {
    columns: {
      tenant: values([1], [null]),
      project_code: values(["old", null], ["none"]),
      member_no: values([1, null], [99]),
    },
    relations: [
      toOne("projects", "projects", [
        ["tenant", "tenant"],
        ["project_code", "code"],
      ]),
      toOne("tasks_member", "members", [
        ["tenant", "tenant"],
        ["member_no", "no"],
      ]),
    ],
    shown: "label, tenant, no, project_code, member_no",
  },
  events: {
    columns: { kind: values(["made", "sent"], ["none", null]), order_id: values([1, null], [99]) },
    relations: [
      toOne("orders", "orders", [["order_id", "id"]]),
      toMany("event_parts", "event_parts", [
        ["id", "event_id"],
        ["kind", "event_kind"],
      ]),
    ],
    shown: `label, kind, ${ORDER}`,
  },
  event_parts: {
    columns: {},
    relations: [
      toOne(
        "events",
        "events",
        [
          ["event_id", "id"],
          ["event_kind", "kind"],
        ],
        true,
      ),
    ],
    shown: "label, event_kind, (select label from public.events as r where r.id = t.event_id) as event",
  },
};

/** The columns that several foreign keys of a row may set, to the same value. */
export const SHARED_COLUMNS: Readonly<Record<string, readonly string[]>> = { tasks: ["tenant"] };

/** The key that a payload of a row of these tables must give. */
export const REQUIRED_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  nodes: ["tenant"],
  projects: ["tenant"],
  members: ["tenant"],
  tasks: ["tenant"],
  events: ["kind"],
  // The default is that of the table, not of the view.
  requests: ["owner"],
};
