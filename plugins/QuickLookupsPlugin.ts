import type {} from "postgraphile";
import { resourcesOf } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickLookupsPlugin: true;
    }
  }
}

export const QuickLookupsPlugin: GraphileConfig.Plugin = {
  name: "QuickLookupsPlugin",
  description: "What core looks for among all tables, or all columns, each time, is found at once",
  after: ["PgBasicsPlugin"],
  schema: {
    hooks: {
      build(unfinished) {
        const build = unfinished as GraphileBuild.Build;
        const { pgTableResource } = build;
        build.pgTableResource = (codec, isStrict = true) => {
          const found = resourcesOf(build.input.pgRegistry, codec).filter(
            ({ parameters, executor, isVirtual, isUnique }) =>
              !parameters && executor === codec.executor && !(isStrict && (isVirtual || isUnique)),
          );
          if (found.length > 1) return pgTableResource(codec, isStrict);
          return (found[0] as ReturnType<typeof pgTableResource<typeof codec>>) ?? null;
        };
        return build;
      },
      init: {
        before: ["PgCodecs"],
        callback(_, { behavior }) {
          // biome-ignore lint/complexity/useLiteralKeys: it is private, and the only way to what is remembered.
          for (const memory of Object.values<Memory>(behavior["behaviorEntities"])) {
            // Among the pairs of before core would look for the same one, which is now known by what it consists of.
            memory.listCache.get = () => undefined;
            for (const cache of [memory.fullCache, memory.inferredCache, memory.overrideCache]) knowPairs(cache);
          }
          return _;
        },
      },
    },
  },
};

type Cache = Map<unknown, unknown>;

/** What core knows of the behavior of one kind of thing: a table, or the pair of a table and the name of a column. */
type Memory = {
  readonly listCache: Cache;
  readonly fullCache: Cache;
  readonly inferredCache: Cache;
  readonly overrideCache: Cache;
};

function knowPairs(cache: Cache): void {
  const pairs = new Map<unknown, Cache>();
  const isPair = (key: unknown): key is [unknown, unknown] => Array.isArray(key) && key.length === 2;
  const getOther = cache.get.bind(cache);
  const setOther = cache.set.bind(cache);
  cache.get = (key) => (isPair(key) ? pairs.get(key[0])?.get(key[1]) : getOther(key));
  cache.set = (key, value) => {
    if (!isPair(key)) return setOther(key, value);
    const [first, second] = key;
    pairs.set(first, (pairs.get(first) ?? new Map()).set(second, value));
    return cache;
  };
}
