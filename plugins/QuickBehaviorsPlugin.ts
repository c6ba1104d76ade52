import type {} from "graphile-build-pg";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickBehaviorsPlugin: true;
    }
  }
}

type BehaviorText = { readonly behaviorString: string };

/** The methods of core's behaviors that are memoized here. All but the first are private. */
type CoreBehavior = {
  entityMatches(type: string, entity: unknown, filter: string): boolean | undefined;
  getBehaviorForEntity(type: string, entity: unknown): BehaviorText;
  getPreferencesAppliedBehaviors(type: string, inferred: BehaviorText, override: BehaviorText): BehaviorText;
  validateBehavior(type: string | null, source: string, text: string): void;
};

export const QuickBehaviorsPlugin: GraphileConfig.Plugin = {
  name: "QuickBehaviorsPlugin",
  description:
    "Memoizes behavior strings, of which a schema has few, so that each is parsed and compared once and not per column",
  schema: {
    hooks: {
      build(build) {
        let behavior: CoreBehavior;
        // Core freezes its behaviors right after this assignment.
        Object.defineProperty(build, "behavior", {
          enumerable: true,
          get: () => behavior,
          set(made: CoreBehavior) {
            behavior = Object.assign(made, memoizeBehavior(made));
          },
        });
        return build;
      },
    },
  },
};

function memoizeBehavior(behavior: CoreBehavior): Omit<CoreBehavior, "getBehaviorForEntity"> {
  const entityMatches = behavior.entityMatches.bind(behavior);
  const applyPreferences = behavior.getPreferencesAppliedBehaviors.bind(behavior);
  const validateBehavior = behavior.validateBehavior.bind(behavior);
  const matches = new Map<string, Map<string, boolean | undefined>>();
  const applied = new Map<string, BehaviorText>();
  const valid = new Set<string>();
  return {
    entityMatches(type, entity, filter) {
      const matchKey = `${type} ${filter}`;
      const results = matches.get(matchKey) ?? new Map<string, boolean | undefined>();
      matches.set(matchKey, results);
      const { behaviorString } = behavior.getBehaviorForEntity(type, entity);
      if (!results.has(behaviorString)) results.set(behaviorString, entityMatches(type, entity, filter));
      return results.get(behaviorString);
    },
    getPreferencesAppliedBehaviors(type, inferred, override) {
      const key = `${type}\n${inferred.behaviorString}\n${override.behaviorString}`;
      const result = applied.get(key) ?? applyPreferences(type, inferred, override);
      applied.set(key, result);
      return result;
    },
    validateBehavior(type, source, text) {
      const key = `${type}\n${text}`;
      if (valid.has(key)) return;
      validateBehavior(type, source, text);
      valid.add(key);
    },
  };
}
