import { READ, type Work } from "../comparison/work.ts";

export const ONE_ROW: Work = {
  ...READ,
  name: "one row by key",
  path: { tables: "/items?id=eq.{n}", handlers: "/items/{n}" },
};

export const WORKS: readonly Work[] = [
  ONE_ROW,
  { ...ONE_ROW, name: "one row by key, a new token each time", tokens: "fresh" },
  {
    ...READ,
    name: "20 rows with a many-to-one embed",
    path: {
      tables: "/comments?select=id,content,items(id,title)&id=gt.{n}&order=id&limit=20",
      handlers: "/comments?after={n}",
    },
  },
  {
    ...READ,
    name: "one row with a one-to-many embed",
    path: { tables: "/items?select=id,title,comments(id,content)&id=eq.{n}", handlers: "/items/{n}/with-comments" },
  },
  {
    name: "insert one row",
    method: "POST",
    path: { tables: "/events", handlers: "/events" },
    body: JSON.stringify(eventOf(1)),
    tokens: "cached",
    connections: 16,
    pgbenchClients: 16,
  },
  bulkInsert(1_000),
  bulkInsert(10_000),
];

export function eventOf(n: number) {
  return { kind: "bench", payload: { n, said: "something that is as long as such things are" } };
}

function bulkInsert(rows: number): Work {
  return {
    name: `insert ${rows.toLocaleString("en")} rows`,
    method: "POST",
    path: { tables: "/events", handlers: "/events/many" },
    body: JSON.stringify(Array.from({ length: rows }, (_, n) => eventOf(n))),
    tokens: "cached",
    connections: 1,
    pgbenchClients: null,
    rows,
  };
}
