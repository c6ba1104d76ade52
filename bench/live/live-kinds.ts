import { openLiveShape, type PathOf } from "./live-clients.ts";

export type LiveKind = { readonly title: string; readonly pathOf: PathOf };

export const LIVE_KINDS: Readonly<Record<string, LiveKind>> = {
  queries: {
    title: "live queries with a join",
    pathOf: (list) => `/rest/v1/tasks?select=id,title,lists(name)&list=eq.${list}&order=id`,
  },
  shapes: { title: "shapes", pathOf: (list, get) => openLiveShape(`/v1/shape?table=tasks&where=list=${list}`, get) },
};
