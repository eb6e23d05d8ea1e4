// What travels through the page: what the server answers, and the state of the page.

export interface Prediction {
  target: number;
  score: number;
  label?: string;
}
export interface Swatch {
  name: string;
  swatch: string;
  n?: number;
}

export interface Job {
  id: string;
  name: string;
  model: string;
  state: string;
  position: number | null;
  n_masks: number;
  preview: boolean;
  goal: number;
  masks_per_second: number | null;
  seconds_left: number | null;
  tolerance: number | null;
  served: boolean;
  note: string;
  created: number;
  nth?: number;
}

export interface Summary {
  n_masks: number;
  predicted: Prediction[];
  truth: Prediction | null;
  right: boolean | null;
  of: Prediction;
  fills: (Swatch & { effect: number })[];
  maps: number[][][];
  error: number;
  color_share: number | null;
}

export interface ClassNumbers {
  label: string;
  name: string;
  model?: string;
  n: number;
  accuracy: number | null;
  effects: Record<string, number>;
  anchor?: string;
}

export interface MeanMap {
  mean: number[][];
  limit: number[][] | null;
  n: number;
}

export interface Numbers {
  key: string;
  model?: string | null;
  label?: string | null;
  classes: ClassNumbers[];
  colors: Swatch[];
  maps: Record<string, MeanMap> | null;
  distances: Record<string, number>;
}

export interface Address {
  level: string;
  id: string | null;
  class?: string;
  vs?: string;
  with?: string;
  color?: string;
  finding?: string;
  estimator?: string;
  above?: string;
  map?: string;
  contours?: string;
  scale?: string;
  of?: string;
  answers?: string;
  model?: string;
  x?: string;
  y?: string;
  find?: string;
  sort?: string;
}

export interface Server {
  models: { name: string; labels: string[] | null; local: boolean }[];
  signs: string[];
  estimators: string[];
  default_estimator: string;
  palette: Swatch[];
  stops: number[][];
  defaults: Record<string, any>;
  audit: boolean;
  worker: { alive: boolean; trouble: string };
}

export interface Audit {
  name: string;
  page: string;
  fills: Swatch[];
  classes: any[];
}

export interface State {
  address: Address;
  server: Server | null;
  audit: Audit | null;
  lost: boolean;
  jobs: Job[];
  loaded: boolean;
  summaries: Map<string, Summary>;
  numbers: Numbers | null;
  selected: Set<string>;
  n_deleted: number;
}

/** Maps as `mcrise.output.web_maps.pack` writes them, unpacked. */
export interface Maps {
  shape: number[];
  size: number[];
  values: Float32Array;
  tests: Float32Array;
  diverging: boolean;
  stops: number[][];
  [more: string]: any;
}
