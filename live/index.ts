export { DependencyCache } from "./dependencies/dependency-cache.ts";
export type { QueryDependencies } from "./dependencies/query-dependencies.ts";
export { LiveQueries } from "./queries/live-queries.ts";
export type { LiveEvent, LiveResult, LiveSource, LiveSubscription } from "./queries/live-subscriber.ts";
export { filtersOf } from "./queries/result-contents.ts";
export type { LiveShape } from "./shapes/live-shape.ts";
export {
  defineShape,
  invalidShape,
  readRowsOfRun,
  type ShapeDefinition,
  type ShapeParameters,
} from "./shapes/shape-definition.ts";
export type { ShapeChange, ShapePosition, ShapeRow } from "./shapes/shape-log.ts";
export { openShapes, type ShapeRegistry } from "./shapes/shape-registry.ts";
export { defineSubset, type ShapeSubset } from "./shapes/shape-subset.ts";
export { parseNames } from "./shapes/where/condition-tokens.ts";
