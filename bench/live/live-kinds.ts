import { openLiveShape, type StreamOf } from "./live-clients.ts";

export type LiveKind = { readonly title: string; readonly streamOf: StreamOf };

const GRAPHQL = `subscription ($list: ID!) { live {
  tasks(where: {list: {id: {eq: $list}}}, orderBy: [{id: ASC}], first: 20) { edges { node { id title list { name } } } }
} }`;

export const LIVE_KINDS: Readonly<Record<string, LiveKind>> = {
  queries: {
    title: "live queries with a join",
    streamOf: (list) => ({ path: `/rest/v1/tasks?select=id,title,lists(name)&list=eq.${list}&order=id` }),
  },
  graphql: {
    title: "live GraphQL queries with a join",
    streamOf: (list) => ({ path: "/graphql", body: JSON.stringify({ query: GRAPHQL, variables: { list } }) }),
  },
  shapes: {
    title: "shapes",
    streamOf: (list, get) => openLiveShape(`/v1/shape?table=tasks&where=list=${list}`, get),
  },
};
