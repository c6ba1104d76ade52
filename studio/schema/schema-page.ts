import type { DatabaseDescription } from "../api/catalog.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { IconButton } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { texts } from "../texts.ts";
import { Diagram } from "./diagram.ts";
import { CreateEnumButton, CreateTableButton } from "./forms/schema-menus.ts";
import { FunctionDetails } from "./function-details.ts";
import { ObjectList } from "./object-list.ts";
import { ExtensionDetails, PublicationDetails, SequenceDetails, TypeDetails } from "./other-details.ts";
import { TableDetails } from "./table-details.ts";

const DIAGRAM = "diagram";

/** `/studio/schema`, `/studio/schema/diagram`, `/studio/schema/table/public/films`. */
export function SchemaPage() {
  const segments = useSegments();
  const { value: catalog, error, reload } = useCatalog();
  const view = segments[1] === DIAGRAM ? DIAGRAM : "objects";
  return html`
    <${PageHeader} title=${texts.schema.title}>
      <nav class="row" aria-label=${texts.schema.views}>
        ${viewLink("objects", pathTo("schema"), view)}${viewLink(DIAGRAM, pathTo("schema", DIAGRAM), view)}
      </nav>
      ${catalog && html`<${CreateEnumButton} /><${CreateTableButton} catalog=${catalog} />`}
      <${IconButton} icon="refresh" label=${texts.schema.refresh} onClick=${reload} />
    <//>
    ${error && html`<div class="page-body"><${Notice} kind="error" error=${error} onRetry=${reload} /></div>`}
    ${catalog === null && !error && html`<${Loading} />`}
    ${catalog && (view === DIAGRAM ? html`<${Diagram} catalog=${catalog} />` : html`<${Objects} catalog=${catalog} />`)}
  `;
}

function viewLink(name: "objects" | "diagram", href: string, current: string) {
  return html`
    <a class="button schema-view" href=${href} aria-current=${name === current ? "page" : undefined}>${texts.schema.viewNames[name]}</a>
  `;
}

type WithCatalog = { readonly catalog: DatabaseDescription };

function Objects({ catalog }: WithCatalog) {
  const segments = useSegments();
  const isChosen = segments.length > 1;
  return html`
    <div class=${isChosen ? "schema-objects chosen" : "schema-objects"}>
      <${ObjectList} catalog=${catalog} path=${pathTo(...segments)} />
      <div class="schema-details">
        ${isChosen && html`<a class="schema-back" href=${pathTo("schema")}>${texts.schema.back}</a>`}
        ${isChosen ? html`<${ChosenObject} catalog=${catalog} />` : html`<${Empty}>${texts.schema.choose}<//>`}
      </div>
    </div>
  `;
}

/** The object of the address. */
function ChosenObject({ catalog }: WithCatalog) {
  const [, kind, first, name, signature] = useSegments();
  const isNamed = (object: { schema: string; name: string }) => object.schema === first && object.name === name;
  const nothing = html`<${Empty}>${texts.schema.gone}<//>`;
  switch (kind) {
    case "table": {
      const table = catalog.tables.find(isNamed);
      return table ? html`<${TableDetails} catalog=${catalog} table=${table} />` : nothing;
    }
    case "function": {
      const given = signature === "()" ? "" : signature;
      const found = catalog.functions.find((each) => isNamed(each) && each.signature === given);
      return found ? html`<${FunctionDetails} catalog=${catalog} described=${found} />` : nothing;
    }
    case "type": {
      const type = catalog.types.find(isNamed);
      return type ? html`<${TypeDetails} catalog=${catalog} type=${type} />` : nothing;
    }
    case "sequence": {
      const sequence = catalog.sequences.find(isNamed);
      return sequence ? html`<${SequenceDetails} sequence=${sequence} />` : nothing;
    }
    case "extension": {
      const extension = catalog.extensions.find((each) => each.name === first);
      return extension ? html`<${ExtensionDetails} extension=${extension} />` : nothing;
    }
    case "publication": {
      const publication = catalog.publications.find((each) => each.name === first);
      return publication ? html`<${PublicationDetails} publication=${publication} />` : nothing;
    }
    default:
      return nothing;
  }
}
