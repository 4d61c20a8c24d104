"""Partial charges of the atoms of amino acids: a table of residues, the same in every protein."""

from functools import cache

from retable.evorank.alphabet import AMINO_ACIDS

# Charged at neutral pH: residue -> atom and its formal charge.
_IONS = {"D": ("OD2", -1), "E": ("OE2", -1), "K": ("NZ", 1), "R": ("NH1", 1)}
# RDKit's sequences name the two carbons of isoleucine the other way round than PDB files do.
_RENAMED = {("I", "CG1"): "CG2", ("I", "CG2"): "CG1"}


@cache
def residue_charges() -> dict[str, dict[str, float]]:
    """Charge of each heavy atom of the twenty residues: letter -> atom name -> elementary charges.

    Gasteiger's charges (RDKit) of the middle residue X of Gly-X-Gly, hydrogens added to the atom
    that bears them. They depend on the residue alone: charges of a whole protein would tell the
    atoms next to a masked residue what it is.
    """
    from rdkit import Chem
    from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

    table = {}
    for letter in AMINO_ACIDS:
        peptide = Chem.MolFromSequence(f"G{letter}G")
        middle = [a for a in peptide.GetAtoms() if a.GetPDBResidueInfo().GetResidueNumber() == 2]
        names = {atom.GetPDBResidueInfo().GetName().strip(): atom for atom in middle}
        if letter in _IONS:
            name, charge = _IONS[letter]
            names[name].SetFormalCharge(charge)
            names[name].SetNumExplicitHs(0)
            peptide.UpdatePropertyCache()
        ComputeGasteigerCharges(peptide)
        table[letter] = {
            _RENAMED.get((letter, name), name): atom.GetDoubleProp("_GasteigerCharge")
            + atom.GetDoubleProp("_GasteigerHCharge")
            for name, atom in names.items()
        }
    return table
