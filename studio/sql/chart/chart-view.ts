import { useMemo, useRef, useState } from "preact/hooks";
import type { SqlColumn, SqlResult } from "#operations/admin-types";
import { Button } from "../../components/button.ts";
import { Checkbox } from "../../components/field.ts";
import { Empty } from "../../components/page.ts";
import { saveFile } from "../../components/save-file.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { CHART_KINDS, type ChartChoice, type ChartKind, isNumeric, readChartData, suggestChart } from "./chart-data.ts";
import { ResultChart } from "./result-chart.ts";

type ChartViewProps = { readonly columns: readonly SqlColumn[]; readonly rows: SqlResult["rows"] };

/** A chart of the rows, and the choice of its columns. */
export function ChartView({ columns, rows }: ChartViewProps) {
  const [choice, setChoice] = useState(() => suggestChart(columns, rows));
  const data = useMemo(() => choice && readChartData(columns, rows, choice), [columns, rows, choice]);
  const picture = useRef<HTMLDivElement>(null);
  if (!choice || !data) return html`<${Empty}>${texts.sql.noChart}<//>`;
  return html`
    <div class="sql-chart">
      <${ChartControls} columns=${columns} choice=${choice} onChange=${setChoice} />
      <div ref=${picture}><${ResultChart} data=${data} /></div>
      <div class="row">
        <${Button} size="small" icon="download" onClick=${() => savePicture(picture.current!.querySelector("svg")!)}>${texts.sql.svg}<//>
      </div>
    </div>
  `;
}

type ControlsProps = {
  readonly columns: readonly SqlColumn[];
  readonly choice: ChartChoice;
  readonly onChange: (choice: ChartChoice) => void;
};

function ChartControls({ columns, choice, onChange }: ControlsProps) {
  const { kind, x, series } = choice;
  const kinds = CHART_KINDS.map((value) => ({ value, label: texts.sql.chartKinds[value] }));
  const places = columns.map(({ name }, index) => ({ value: String(index), label: name }));
  const numbers = [...columns.keys()].filter((index) => isNumeric(columns[index]!) && index !== x);
  const toggle = (index: number, isShown: boolean) =>
    onChange({ ...choice, series: numbers.filter((each) => (each === index ? isShown : series.includes(each))) });
  const chooseX = (value: string) =>
    onChange({ ...choice, x: Number(value), series: series.filter((index) => index !== Number(value)) });
  return html`
    <div class="row">
      <${Select} label=${texts.sql.chartKind} value=${kind} options=${kinds} onChange=${(value: ChartKind) => onChange({ ...choice, kind: value })} />
      <${Select} label=${texts.sql.chartX} value=${String(x)} options=${places} onChange=${chooseX} />
      <fieldset class="sql-series">
        <legend>${texts.sql.chartSeries}</legend>
        ${numbers.map(
          (index) => html`
            <${Checkbox} key=${index} label=${columns[index]!.name} checked=${series.includes(index)} onChange=${(isShown: boolean) => toggle(index, isShown)} />
          `,
        )}
      </fieldset>
    </div>
  `;
}

/** Saves the chart as a file, which contains the colours of the page. */
function savePicture(picture: SVGSVGElement): void {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const originals = [...picture.querySelectorAll("*")];
  for (const [index, element] of [...copy.querySelectorAll("*")].entries()) {
    const { fill, fillOpacity, stroke, strokeWidth, font } = getComputedStyle(originals[index]!);
    for (const [name, value] of Object.entries({
      fill,
      "fill-opacity": fillOpacity,
      stroke,
      "stroke-width": strokeWidth,
    }))
      element.setAttribute(name, value);
    if (element instanceof SVGTextElement) element.style.font = font;
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  saveFile("chart.svg", new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
}
