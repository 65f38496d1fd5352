// Ranks what a search finds: pages for users before the reference and the course, of these the pages whose titles begin
// as the words that are searched for, and first of all the page that a newcomer means by a word.
const GUIDES = /^[\w-]+$/; // pages of docs/ itself, not of its folders
const SEARCHED = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().trim();
const MEANT = {
  "binding": ["mm/gbsa", "mm/pbsa", "mmgbsa", "affinity"],
  "coming-from-amber": ["amber", "ambertools", "sander", "mmpbsa", "mmpbsa.py"],
  "course/README": ["opencl", "exercise", "exercises", "lecture"],
  "explore": ["monte carlo", "adaptivepele"],
  "formats/amber": ["prmtop", "parm7", "inpcrd", "rst7", "netcdf"],
  "formats/inputs": ["gromacs", "charmm", "force field", "forcefield", "pdb", "namd"],
  "ligands": ["smiles", "sdf", "gaff", "gaff2", "parameters"],
  "many": ["cluster", "slurm", "dask", "workers", "journal", "resume"],
  "maps": ["potential map", "electrostatic potential", "dx", "potmap", "grid"],
  "minimizing": ["relax", "alphafold"],
  "pictures": ["surface", "pymol", "chimerax", "vmd", "view"],
  "sampling": ["umbrella", "metadynamics", "opes", "mbar", "free energy"],
  "screen": ["docking", "vina", "virtual screening", "dock"],
  "simulating": ["dynamics", "molecular dynamics", "md", "replica exchange", "replicas", "langevin"],
  "start": ["pip", "cuda", "nvidia", "conda", "hydrogens", "prepare", "pka", "windows", "macos", "container", "docker"],
  "theory/poisson-boltzmann": ["poisson boltzmann", "poisson-boltzmann"],
};
var Scorer = {
  score: (result) => {
    const [docname, title, anchor, description, score] = result;
    const begins = SEARCHED.length > 3 && title.toLowerCase().startsWith(SEARCHED.slice(0, 7));
    const guide = GUIDES.test(docname) && docname !== "index" ? 12 + (begins && !anchor ? 3 : 0) : 0;
    return score + guide + ((MEANT[docname] || []).includes(SEARCHED) ? 40 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
