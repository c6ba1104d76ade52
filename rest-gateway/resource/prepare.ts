import type { Config } from "../../engine/config/config.ts";
import type { Hits } from "../../engine/recent-map.ts";
import type { Intent, Manner } from "../statement/intent.ts";
import { makePreparer, type Prepared } from "../statement/prepare.ts";
import type { Asked } from "./asked.ts";

/** Intents that come with the same model differ in their values only. */
type PrepareFor = (asked: PreparationContext, intent: Intent, model?: object) => Prepared;
type PreparationContext = Pick<Asked, "catalog"> & { readonly caller: Pick<Asked["caller"], "role"> };

/** The rows are JSON; none of our conditions needs another form. */
const MANNER: Manner = { formats: [{ kind: "media", type: "application/json" }], body: true, maxAffected: null };

/** Rows are changed by their address, which names one; of tables that others inherit from several may have one key. */
const CHANGE: Manner = { ...MANNER, maxAffected: 1 };

/** A plan is looked up without looking at the intent, where it has a model that another had before. */
export function makeResourcePreparer({ maxPageSize }: Pick<Config, "maxPageSize">, hits: Hits): PrepareFor {
  const { prepare } = makePreparer(
    {
      aggregates: false,
      maxRows: maxPageSize,
      safeWrites: true,
      legacyTargetNames: false,
      explain: false,
      // A digest of each answer stands before it.
      whole: true,
    },
    hits,
  );
  /** By models, which live as long as the catalogue. */
  const preparedLike = new WeakMap<object, Prepared>();

  return ({ catalog, caller }, intent, model) => {
    const like = model && preparedLike.get(model);
    if (like) {
      hits.found++;
      return like.again(intent);
    }
    const manner = intent.kind === "update" || intent.kind === "delete" ? CHANGE : MANNER;
    const prepared = prepare(intent, manner, catalog, caller.role);
    if (model) preparedLike.set(model, prepared);
    return prepared;
  };
}
