import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type DatabaseDescription, type DescribedTable, nameKey, shortName } from "../api/catalog.ts";
import { Button, IconButton } from "../components/button.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Empty } from "../components/page.ts";
import { saveFile } from "../components/save-file.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { isJsonObject, readStoredJson, writeStoredJson } from "../stored-json.ts";
import { texts } from "../texts.ts";
import { findClusters, MANY_TABLES } from "./clusters.ts";
import {
  boundsOf,
  COLUMN_CHOICES,
  type ColumnChoice,
  chooseTables,
  type DiagramBox,
  type DiagramModel,
  toDiagram,
} from "./diagram-model.ts";
import { DiagramSearch, markedBoxes, NO_SEARCH } from "./diagram-search.ts";
import { describeLink } from "./diagram-shapes.ts";
import { DiagramView, type PlaceOf, StaticDiagram } from "./diagram-view.ts";
import { layOut, type Point } from "./layout.ts";
import type { PanZoom } from "./pan-zoom.ts";

const ALL_SCHEMAS = "*";

/** A diagram of tables and foreign keys. The address selects the tables. */
export function Diagram({ catalog }: { readonly catalog: DatabaseDescription }) {
  const choice = useDiagramChoice(catalog);
  const { model, candidates } = choice;
  const { clusters, layout } = useMemo(() => arrangeModel(model), [model]);
  const [moved, setMoved] = useState(() => readPlaces(catalog.database.name));
  const [search, setSearch] = useState(NO_SEARCH);
  const found = useMemo(() => markedBoxes(model.boxes, search).map(({ id }) => id), [model, search]);
  const chosen = model.boxes.map(({ id }) => id).join();
  // The place among those that were found is another one in another choice of tables.
  useEffect(() => setSearch(({ text }) => ({ text, current: null })), [chosen]);
  const panZoom = useRef<PanZoom | null>(null);
  const placeOf: PlaceOf = (id) => moved.get(id) ?? layout.get(id)!;
  const change = (places: ReadonlyMap<string, Point>) => {
    setMoved(places);
    savePlaces(catalog.database.name, places);
  };
  const move = (id: string, { x, y }: Point) => {
    const at = placeOf(id);
    change(new Map(moved).set(id, { x: at.x + x, y: at.y + y }));
  };
  const showBoxes = (boxes: readonly DiagramBox[]) => panZoom.current!.fit(boundsOf(boxes, placeOf));
  const arrange = () => {
    const shown = new Set(model.boxes.map(({ id }) => id));
    change(new Map([...moved].filter(([id]) => !shown.has(id))));
    panZoom.current!.fit(boundsOf(model.boxes, (id) => layout.get(id)!));
  };
  usePrinting(model, placeOf);
  return html`
    <div class="schema-diagram">
      <div class="schema-controls">
        <${DiagramChoices} catalog=${catalog} choice=${choice} />
        <${DiagramSearch} boxes=${model.boxes} search=${search} onSearch=${setSearch} onShow=${showBoxes} />
        <div class="page-actions">
          <${IconButton} icon="minus" label=${texts.schema.zoomOut} onClick=${() => panZoom.current!.zoom(0.8)} />
          <${IconButton} icon="plus" label=${texts.schema.zoomIn} onClick=${() => panZoom.current!.zoom(1.25)} />
          <${Button} size="small" onClick=${() => showBoxes(model.boxes)}>${texts.schema.fit}<//>
          <${Button} size="small" onClick=${arrange}>${texts.schema.arrange}<//>
          <${Button} size="small" onClick=${() => window.print()}>${texts.schema.print}<//>
          <${Button} size="small" icon="download" onClick=${() => downloadDiagram(model, placeOf, catalog.database.name)}>
            ${texts.schema.downloadSvg}
          <//>
        </div>
      </div>
      ${candidates.length === 0 && html`<${Empty}>${texts.schema.noTables}<//>`}
      ${candidates.length > 0 && html`<${DiagramView} model=${model} clusters=${clusters} found=${found} placeOf=${placeOf} onMove=${move} panZoom=${panZoom} />`}
      <p id="diagram-keys" class="schema-hint quiet">${texts.schema.diagramKeys}</p>
      <${RelationList} model=${model} />
    </div>
  `;
}

/** Places the tables, those of a cluster together. */
function arrangeModel({ boxes, links }: DiagramModel) {
  const clusters = findClusters(boxes, links);
  if (clusters.length === 0) return { clusters, layout: layOut(boxes, links) };
  const groups = clusters.flatMap(({ center, ids }) => (center === null ? ids.map((id) => [id]) : [ids]));
  return { clusters, layout: layOut(boxes, links, groups) };
}

type DiagramState = {
  readonly model: DiagramModel;
  /** The tables that can be chosen; `chosen` are in the diagram. */
  readonly candidates: readonly DescribedTable[];
  readonly chosen: ReadonlySet<string>;
  readonly schema: string;
  readonly columns: ColumnChoice;
};

function useDiagramChoice(catalog: DatabaseDescription): DiagramState {
  const [schemaParameter] = useSearchParameter("schema");
  const [around] = useSearchParameter("around");
  const [only] = useSearchParameter("only");
  const [columnParameter] = useSearchParameter("columns");
  const initial = catalog.schemas.find(({ exposed }) => exposed)?.name ?? ALL_SCHEMAS;
  const schema = schemaParameter ?? initial;
  const candidates = useMemo(
    () => chooseTables(catalog, schema === ALL_SCHEMAS ? null : schema, around),
    [catalog, schema, around],
  );
  const columns =
    COLUMN_CHOICES.find((choice) => choice === columnParameter) ?? (candidates.length > MANY_TABLES ? "keys" : "all");
  return useMemo(() => {
    const chosen = only === null ? new Set(candidates.map(nameKey)) : readNames(only);
    const tables = candidates.filter((table) => chosen.has(nameKey(table)));
    return { model: toDiagram({ tables, columns }), candidates, chosen, schema, columns };
  }, [candidates, columns, only, schema]);
}

function readNames(text: string): ReadonlySet<string> {
  try {
    return new Set((JSON.parse(text) as unknown[]).map((name) => JSON.stringify(name)));
  } catch {
    return new Set();
  }
}

type DiagramChoicesProps = { readonly catalog: DatabaseDescription; readonly choice: DiagramState };

function DiagramChoices({ catalog, choice }: DiagramChoicesProps) {
  const [, setSchema] = useSearchParameter("schema");
  const [around, setAround] = useSearchParameter("around");
  const [, setOnly] = useSearchParameter("only");
  const [, setColumns] = useSearchParameter("columns");
  const schemas = catalog.schemas.filter(({ name }) => catalog.tables.some((table) => table.schema === name));
  const chooseSchema = (name: string) => {
    setAround(null, { replace: true });
    setOnly(null, { replace: true });
    setSchema(name, { replace: true });
  };
  return html`
    <${Select}
      label=${texts.schema.schema}
      hideLabel
      value=${around === null ? choice.schema : ""}
      options=${[
        ...(around === null ? [] : [{ value: "", label: texts.schema.around(JSON.parse(around)[1] ?? "") }]),
        ...schemas.map(({ name }) => name),
        { value: ALL_SCHEMAS, label: texts.schema.allSchemas },
      ]}
      onChange=${chooseSchema}
    />
    <${Select}
      label=${texts.schema.columnChoice}
      hideLabel
      value=${choice.columns}
      options=${COLUMN_CHOICES.map((value) => ({ value, label: texts.schema.columnChoices[value] }))}
      onChange=${(value: string) => setColumns(value, { replace: true })}
    />
    <${TableChooser} choice=${choice} onChange=${(names: string | null) => setOnly(names, { replace: true })} />
  `;
}

type ChooserProps = { readonly choice: DiagramState; readonly onChange: (names: string | null) => void };

function TableChooser({ choice: { candidates, chosen }, onChange }: ChooserProps) {
  const [text, setText] = useState("");
  const shown = candidates.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  const choose = (names: ReadonlySet<string>) => {
    const all = candidates.map(nameKey);
    onChange(all.every((name) => names.has(name)) ? null : `[${all.filter((name) => names.has(name)).join(",")}]`);
  };
  const toggle = (name: string, isChosen: boolean) => {
    const names = new Set(chosen);
    if (isChosen) names.add(name);
    else names.delete(name);
    choose(names);
  };
  const count = candidates.filter((table) => chosen.has(nameKey(table))).length;
  return html`
    <details class="schema-chooser">
      <summary class="button small">${texts.schema.chosenTables(count, candidates.length)}</summary>
      <div class="schema-chooser-list">
        <${TextField} label=${texts.schema.searchTables} hideLabel type="search" placeholder=${texts.schema.searchTables} value=${text} onInput=${setText} />
        <div class="row">
          <${Button} size="small" onClick=${() => choose(new Set([...chosen, ...shown.map(nameKey)]))}>${texts.schema.chooseAll}<//>
          <${Button} size="small" onClick=${() => choose(chosen.difference(new Set(shown.map(nameKey))))}>${texts.schema.chooseNone}<//>
        </div>
        <div class="schema-chooser-items">
          ${shown.map((table) => {
            const name = nameKey(table);
            return html`<${Checkbox} key=${name} label=${shortName(table)} checked=${chosen.has(name)} onChange=${(checked: boolean) => toggle(name, checked)} />`;
          })}
        </div>
      </div>
    </details>
  `;
}

/** The same relations as text. */
function RelationList({ model }: { readonly model: DiagramModel }) {
  return html`
    <details class="schema-relations">
      <summary>${texts.schema.asText}</summary>
      <ul>${model.links.map((link) => html`<li key=${link.id}>${describeLink(link)}</li>`)}</ul>
    </details>
  `;
}

/** Prints the whole diagram in place of the page, whatever part of it is visible. */
function usePrinting(model: DiagramModel, placeOf: PlaceOf): void {
  const current = useRef({ model, placeOf });
  current.current = { model, placeOf };
  useEffect(() => {
    const page = document.createElement("div");
    page.className = "schema-print";
    const begin = () => {
      document.body.append(page);
      render(html`<${StaticDiagram} ...${current.current} />`, page);
    };
    const end = () => {
      render(null, page);
      page.remove();
    };
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      end();
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
}

const placesKey = (database: string) => `studio.diagram.${database}`;

/** Reads the positions of dragged boxes by table; the browser stores them. */
function readPlaces(database: string): ReadonlyMap<string, Point> {
  const stored = readStoredJson(placesKey(database), isJsonObject) ?? {};
  return new Map(Object.entries(stored).filter((entry): entry is [string, Point] => isPoint(entry[1])));
}

function savePlaces(database: string, places: ReadonlyMap<string, Point>): void {
  writeStoredJson(placesKey(database), Object.fromEntries(places));
}

function isPoint(value: unknown): value is Point {
  return isJsonObject(value) && Number.isFinite(value.x) && Number.isFinite(value.y);
}

/** The colours of the light scheme: the file has no other styles. */
const STYLES = `
  text { font-family: system-ui, sans-serif; fill: #1a202b }
  .diagram-title { font-weight: 600 }
  .diagram-rows { font-size: 12px }
  .diagram-column.key { font-weight: 600 }
  .diagram-mark { font-size: 9px; fill: #566072 }
  .diagram-type { font: 11px ui-monospace, monospace; fill: #566072 }
  .diagram-box { fill: #fff; stroke: #8b94a3 }
  .diagram-rule { stroke: #dfe3e9 }
  .diagram-line { fill: none; stroke: #566072 }
  .diagram-reach { display: none }`;

function downloadDiagram(model: DiagramModel, placeOf: PlaceOf, name: string): void {
  saveFile(`${name}.svg`, new Blob([diagramFile(model, placeOf)], { type: "image/svg+xml" }));
}

/** Returns the diagram as a self-contained SVG file. */
function diagramFile(model: DiagramModel, placeOf: PlaceOf): string {
  const holder = document.createElement("div");
  render(html`<${StaticDiagram} model=${model} placeOf=${placeOf} />`, holder);
  const svg = holder.querySelector("svg")!;
  // The links would lead to pages of this service.
  for (const link of svg.querySelectorAll("a")) link.removeAttribute("href");
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = STYLES;
  svg.prepend(style);
  return new XMLSerializer().serializeToString(svg);
}
